"""Inputs made from networks: what they are trained for, who is left alone, and that they depend on the key alone."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.data import Normalisation
from fedfuse.parts.sources.synthesised import Made, SynthesisSettings, Wanted, synthesise
from fedfuse.parts.sources.synthesised.asking import asked
from fedfuse.parts.sources.synthesised.losses import statistics_distance
from fedfuse.parts.sources.synthesised.training import CPU, _Synthesis, as_made, mean_logits

CLASSES = 3
IMAGES = Wanted((1, 8, 8), True, CLASSES, Normalisation((0.5,), (0.5,)))
NUMBERS = Wanted((4,), False, CLASSES, Normalisation((1.0, 0.0, -2.0, 5.0), (2.0, 1.0, 0.1, 3.0)))
SMALL = SynthesisSettings(size=20, batch_size=8, steps=3, latent=5, width=2)
BOOSTED = SMALL.model_copy(update={"hardness": 1.0, "perturbation": 8 / 255, "weight_step": 0.1})


def network(seed, wanted=IMAGES, norm=True):
    """With BatchNorm statistics that are nobody's own."""
    torch.manual_seed(seed)
    features = int(np.prod(wanted.shape))
    layers = [nn.Flatten(), nn.Linear(features, 6), nn.BatchNorm1d(6) if norm else nn.Identity(), nn.ReLU()]
    built = nn.Sequential(*layers, nn.Dropout(0.5), nn.Linear(6, CLASSES))
    if norm:
        built[2].running_mean.normal_()
        built[2].running_var.uniform_(0.5, 2)
    return built


def everything(*networks):
    return [tensor.clone() for one in networks for tensor in one.state_dict().values()]


def at_work(teachers, settings=SMALL, students=(), wanted=IMAGES, key=0):
    lends = [lending(teacher) for teacher in teachers]
    return _Synthesis(lends, wanted, settings, Key(key), students, mean_logits, as_made, CPU)


def lending(*teachers):
    """A function that lends the first of these networks, and others when it is asked again."""

    @contextmanager
    def lend():
        yield teachers[0]

    return lend


@pytest.mark.parametrize("wanted", [IMAGES, NUMBERS])
@pytest.mark.parametrize("settings", [SMALL, BOOSTED])
def test_inputs_as_they_are_kept(wanted, settings):
    teachers = [network(seed, wanted) for seed in range(3)]
    made = synthesise(teachers, wanted, settings, Key(0), students=[network(9, wanted)])
    assert made.inputs.shape == (20, *wanted.shape)
    assert made.inputs.dtype == (torch.uint8 if wanted.are_images else torch.float32)
    assert made.inputs.isfinite().all()
    assert made.labels.shape == (20,)
    assert set(made.labels.tolist()) == set(range(CLASSES))
    assert torch.equal(made.weights, torch.ones(3)) == (settings.weight_step == 0)


@pytest.mark.parametrize("settings", [SMALL, BOOSTED])
def test_nobody_is_changed(settings):
    teachers, student = [network(seed) for seed in range(3)], network(9)
    teachers[1].train()
    before = everything(*teachers, student)
    synthesise(teachers, IMAGES, settings, Key(0), students=[student])
    after = everything(*teachers, student)
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))
    assert all(parameter.grad is None for one in (*teachers, student) for parameter in one.parameters())
    assert [teacher.training for teacher in teachers] == [True, True, True]
    assert not any(layer._forward_pre_hooks for teacher in teachers for layer in teacher)


@pytest.mark.parametrize("settings", [SMALL, BOOSTED])
def test_same_key_same_bits(settings):
    teachers, students = [network(seed) for seed in range(2)], [network(9)]
    torch.manual_seed(1)
    one = synthesise(teachers, IMAGES, settings, Key(0), students=students)
    torch.manual_seed(2)
    again = synthesise(teachers, IMAGES, settings, Key(0), students=students)
    other = synthesise(teachers, IMAGES, settings, Key(1), students=students)
    assert torch.equal(one.inputs, again.inputs)
    assert torch.equal(one.weights, again.weights)
    assert not torch.equal(one.inputs, other.inputs)


def test_the_loss_is_the_sum_of_the_papers_terms():
    teachers, student = [network(seed) for seed in range(3)], nn.Sequential(network(9), Reversed())
    settings = SMALL.model_copy(update={"statistics_weight": 0.3, "divergence_weight": 0.7})
    made, labels = torch.rand(6, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1, 2])
    found = at_work(teachers, settings, [student]).loss(made, labels).item()
    with torch.no_grad():
        said, distances = [], []
        for teacher in teachers:
            with statistics_distance(teacher.eval()) as distance:
                said.append(teacher(made).double().numpy())
                distances.append(distance().item())
        own = student.eval()(made).double().log_softmax(1).numpy()
    together = np.mean(said, axis=0)
    together -= np.log(np.exp(together).sum(1, keepdims=True))
    divergence = (np.exp(together) * (together - own)).sum(1) * (together.argmax(1) != own.argmax(1))
    expected = -together[range(6), labels].mean() + 0.3 * np.mean(distances) - 0.7 * divergence.mean()
    assert divergence.any()
    assert found == pytest.approx(expected, rel=1e-5)


def test_gradients_are_those_of_all_teachers_in_memory_at_once():
    """Teachers that are lent twice, one at a time, and networks that are there: the same gradient of the inputs."""
    teachers = [network(seed).eval() for seed in range(3)]
    inputs = torch.rand(4, 1, 8, 8, requires_grad=True)
    answers = [asked(lending(teacher), inputs) for teacher in teachers]
    sum((1 + k) * said.square().sum() + distance for k, (said, distance) in enumerate(answers)).backward()
    found, inputs.grad = inputs.grad, None
    for k, teacher in enumerate(teachers):
        with statistics_distance(teacher) as distance:
            ((1 + k) * teacher(inputs).square().sum() + distance()).backward()
    assert torch.allclose(found, inputs.grad, rtol=1e-4, atol=1e-5)


def test_one_teacher_is_out_at_a_time():
    """All of them may be one resident network that is given other weights."""
    resident, weights, out = network(0), [network(seed).state_dict() for seed in range(3)], []

    def lend(number):
        @contextmanager
        def lent():
            assert not out
            out.append(number)
            resident.load_state_dict(weights[number])
            yield resident
            out.clear()

        return lent

    lent = synthesise([lend(number) for number in range(3)], IMAGES, BOOSTED, Key(0), students=[network(9)])
    there = synthesise([network(seed) for seed in range(3)], IMAGES, BOOSTED, Key(0), students=[network(9)])
    assert torch.equal(lent.inputs, there.inputs)
    assert torch.equal(lent.weights, there.weights)


def taught(seed):
    """A network that knows which rows of an image are bright."""
    teacher, random = network(seed), Key(seed).torch()
    optimizer = torch.optim.Adam(teacher.parameters(), lr=0.01)
    for _ in range(100):
        labels = torch.randint(CLASSES, (32,), generator=random)
        inputs = 0.5 * torch.rand(32, 1, 8, 8, generator=random)
        for number, label in enumerate(labels.tolist()):
            inputs[number, :, 2 * label : 2 * label + 2] += 0.5
        optimizer.zero_grad()
        nn.functional.cross_entropy(teacher(inputs), labels).backward()
        optimizer.step()
    return teacher


def test_teachers_recognise_what_was_made_for_them():
    """And do not in noise, where the wanted class is one of three; statistics are more familiar, too."""
    teachers = [taught(seed) for seed in range(2)]
    longer = SMALL.model_copy(update={"size": 30, "batch_size": 30, "steps": 60, "learning_rate": 0.01})
    made = synthesise(teachers, IMAGES, longer, Key(0))
    noise = torch.randint(0, 256, made.inputs.shape, generator=Key(0).torch()) / 255
    found, distances = [], []
    with torch.no_grad():
        for inputs in (made.inputs.float() / 255, noise):
            answers = [asked(lending(teacher), inputs) for teacher in teachers]
            found.append((sum(said for said, _ in answers).argmax(1) == made.labels).float().mean().item())
            distances.append(sum(distance.item() for _, distance in answers))
    assert found[0] > 0.8 > 0.5 > found[1]
    assert distances[0] < distances[1]


def test_a_teacher_that_knows_nothing_loses_its_weight():
    """Its answers are another teacher's, reversed, so that it is always wrong."""
    knows = taught(0)
    wrong = nn.Sequential(knows, Reversed())
    settings = SMALL.model_copy(update={"size": 32, "steps": 10, "weight_step": 0.1, "divergence_weight": 0.0})
    made = synthesise([knows, knows, wrong], IMAGES, settings, Key(0))
    assert made.weights[2] < made.weights[0]
    assert made.weights.min() >= 0
    assert made.weights.max() <= 3


class Reversed(nn.Module):
    def forward(self, logits):
        return -logits


def test_a_step_of_the_weights_is_the_sign_of_their_gradient():
    """d/dw_k of CE(sum w z / sum w, y), by differences; one batch, one step."""
    teachers = [network(seed) for seed in range(3)]
    settings = SMALL.model_copy(update={"size": 8, "weight_step": 0.2, "divergence_weight": 0.0})
    made = synthesise(teachers, IMAGES, settings, Key(0))
    with torch.no_grad():
        said = np.stack([t.eval()(made.inputs.float() / 255).double().numpy() for t in teachers])

    def loss(weights):
        together = np.tensordot(weights, said, 1) / weights.sum()
        return -(together - np.log(np.exp(together).sum(1, keepdims=True)))[range(8), made.labels].mean()

    slopes = [(loss(np.ones(3) + 1e-4 * unit) - loss(np.ones(3) - 1e-4 * unit)) for unit in np.eye(3)]
    assert np.allclose(made.weights, 1 - 0.2 * np.sign(slopes))


def test_earlier_inputs_stay_first():
    teachers, students = [network(seed) for seed in range(2)], [network(9)]
    kept = Made(torch.full((7, 1, 8, 8), 3, dtype=torch.uint8), torch.ones(7, dtype=torch.long))
    made = synthesise(teachers, IMAGES, SMALL, Key(0), students=students, kept=kept)
    assert len(made.inputs) == len(made.labels) == 20
    assert torch.equal(made.inputs[:7], kept.inputs)
    assert torch.equal(made.labels[:7], kept.labels)
    one_missing = Made(made.inputs[:19], made.labels[:19])
    assert len(synthesise(teachers, IMAGES, SMALL, Key(1), students=students, kept=one_missing).inputs) == 20
    full = Made(made.inputs, made.labels)
    assert torch.equal(synthesise(teachers, IMAGES, SMALL, Key(1), students=students, kept=full).inputs, made.inputs)


def test_students_matter_unless_divergence_counts_nothing():
    teachers = [taught(0)]
    alone, none = (SMALL.model_copy(update={"divergence_weight": weight, "steps": 6}) for weight in (50.0, 0.0))
    inputs = [
        synthesise(teachers, IMAGES, settings, Key(0), students=students).inputs
        for settings in (alone, none)
        for students in ([], [nn.Sequential(teachers[0], Reversed())])
    ]
    assert not torch.equal(inputs[0], inputs[1])
    assert torch.equal(inputs[0], inputs[2])
    assert torch.equal(inputs[2], inputs[3])


@pytest.mark.parametrize("settings", [SMALL, BOOSTED])
def test_a_teacher_that_says_nan_gives_inputs_all_the_same(settings):
    broken = network(1)
    broken[1].weight.data.fill_(float("nan"))
    made = synthesise([network(0), broken], IMAGES, settings, Key(0), students=[network(9)])
    assert made.inputs.shape == (20, 1, 8, 8)
    assert made.weights.isfinite().all()


class Thresholds(nn.Module):
    """Rounds its inputs, as a model behind another runtime that gives numbers and no gradients."""

    def forward(self, inputs):
        return inputs.detach().flatten(1)[:, :CLASSES]


class Arrays(nn.Module):
    def forward(self, inputs):
        return torch.from_numpy(inputs.numpy())


def test_teachers_without_gradients_are_refused():
    with pytest.raises(ConfigError, match=r"^teacher 2 gives no gradients, as no ONNX model does, so that inputs cann"):
        synthesise([network(0), Thresholds()], IMAGES, SMALL, Key(0))
    with pytest.raises(ConfigError, match=r"^teacher 1 cannot answer about inputs that are made: .*numpy"):
        synthesise([Arrays()], IMAGES, SMALL, Key(0))
    with pytest.raises(ConfigError, match=r"^teacher 1 cannot answer about inputs that are made: .*shape"):
        synthesise([network(0)], replace(IMAGES, shape=(1, 9, 9)), SMALL, Key(0))


def test_progress_is_told():
    told = []
    synthesise([network(0)], IMAGES, SMALL, Key(0), progress=lambda *news: told.append(news))
    assert told == [("synthesise", done, 3) for done in range(4)]
