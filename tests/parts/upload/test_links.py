"""Every link against a computation of its own: alone, behind others, and in a federation, stopped or shuffled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.messages import Task, within
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment
from fedfuse.federation import Recipe
from fedfuse.methods import METHODS
from fedfuse.models import Mlp
from fedfuse.parts.base import CheckContext
from fedfuse.parts.tensor_spec import TensorSpec
from fedfuse.parts.upload import Chain, Clip, HalfPrecision, Noise, Partial, TopK
from fedfuse.runtime.optimizers import Sgd
from fedfuse.testing.trial import through_a_checkpoint
from tests.helpers import (
    CLASSES,
    FEATURES,
    Recorder,
    TinyNorm,
    make_bank,
    make_client,
    make_examples,
    make_federation,
    make_weights,
    played,
    tiny_config,
    tiny_method,
    without_seconds,
)

BANK = make_bank(norm=TinyNorm(), mlp=Mlp(hidden=(5,)))
PROTOTYPES = ["norm", "mlp"]
KEY = Key(3)


def at_work(prototype="mlp", length=1.0, state=None, key=KEY, seed=1):
    """A client with what it received and a made-up result of its training, whose update has this length."""
    received = make_weights(BANK, prototype, seed)
    random = torch.Generator().manual_seed(100 + seed)
    update = torch.randn(received.parameters.shape, generator=random)
    trained = received.with_parameters(received.parameters + length * update / update.norm())
    trained = trained.with_buffers(trained.buffers + torch.rand(trained.buffers.shape, generator=random))
    task = Task(1, 0, prototype, received)
    model = BANK.lend(prototype, trained)
    return make_client(task, model, make_examples(4), bank=BANK, key=key, state=within("upload", state or {})), trained


def through(links, client, trained):
    """What travels, and what the server makes of it."""
    chain, sent = Chain(links), {"weights": trained.flat}
    packed, shapes = chain.pack(sent, client), {"weights": tuple(trained.flat.shape)}
    spec = chain.specs(shapes, client.task.prototype, BANK)[-1]
    assert packed.tensors.keys() == spec.keys()
    assert [TensorSpec.of(spec[name]).fault(tensor) for name, tensor in packed.tensors.items()] == [None] * len(spec)
    came = chain.unpack(packed.tensors, shapes, client.task, BANK)
    assert set(came) == {"weights"}
    assert came["weights"].dtype == torch.float32
    return packed, Weights(came["weights"], trained.layout)


def doubles(tensor):
    return tensor.double().numpy()


def recipe_of(*links, **parts):
    return Recipe.model_validate({"upload": list(links), **parts})


def refused_run(method, out, **sections):
    """The one sentence with which an experiment is refused before its first round."""
    with pytest.raises(ConfigError) as caught:
        Experiment(tiny_config(method, **sections)).run(out)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestClip:
    @pytest.mark.parametrize("prototype", PROTOTYPES)
    @pytest.mark.parametrize("norm", [0.01, 0.5, 2.9, 3.1])
    def test_is_the_loop(self, prototype, norm):
        client, trained = at_work(prototype, length=3.0)
        _, came = through([Clip(norm=norm)], client, trained)
        before, after = doubles(client.task.weights.parameters), doubles(trained.parameters)
        length = sum((y - x) ** 2 for x, y in zip(before, after, strict=True)) ** 0.5
        expected = [x + (y - x) * min(1, norm / length) for x, y in zip(before, after, strict=True)]
        np.testing.assert_allclose(doubles(came.parameters), expected, rtol=1e-5, atol=1e-6)
        assert np.linalg.norm(doubles(came.parameters) - before) <= min(norm, length) * (1 + 1e-5)

    def test_statistics_are_untouched(self):
        client, trained = at_work("norm", length=3.0)
        _, came = through([Clip(norm=0.1)], client, trained)
        assert len(trained.buffers)
        assert torch.equal(came.buffers, trained.buffers)

    @pytest.mark.parametrize("prototype", PROTOTYPES)
    def test_a_short_update_is_untouched_bit_for_bit(self, prototype):
        for seed in range(20):
            client, trained = at_work(prototype, length=0.3, seed=seed)
            random = torch.Generator().manual_seed(seed)
            for _ in range(9):  # as training does, in steps of its own size
                step = 0.01 * torch.randn(trained.parameters.shape, generator=random)
                trained = trained.with_parameters(trained.parameters + step)
            _, came = through([Clip(norm=5.0)], client, trained)
            assert came.equals(trained)

    def test_a_bound_that_nobody_reaches_is_fedavg_bit_for_bit(self):
        bound, plain = (
            played(make_federation(bank=BANK, recipe=recipe_of(*links)), 3).server.weights
            for links in ([{"kind": "clip", "norm": 1e6}], [])
        )
        assert all(bound[prototype].equals(plain[prototype]) for prototype in PROTOTYPES)

    def test_no_update_at_all_is_none(self):
        client, _ = at_work()
        _, came = through([Clip(norm=0.5)], client, client.task.weights)
        assert came.equals(client.task.weights)


class TestNoise:
    def test_is_the_gaussian_stream_of_the_clients_key(self):
        client, trained = at_work()
        _, came = through([Noise(deviation=0.2)], client, trained)
        stream = torch.randn(trained.parameters.shape, generator=KEY.child("upload", 0, "noise").torch())
        torch.testing.assert_close(came.parameters - trained.parameters, 0.2 * stream, rtol=1e-4, atol=1e-6)

    def test_its_size_is_the_stated_one(self):
        moved = []
        for number in range(300):
            client, trained = at_work(key=Key(number))
            moved.append(through([Noise(deviation=0.2)], client, trained)[1].flat - trained.flat)
        assert float(torch.stack(moved).std()) == pytest.approx(0.2, rel=0.03)
        assert float(torch.stack(moved).mean()) == pytest.approx(0, abs=0.01)

    def test_two_links_of_it_are_two_streams(self):
        client, trained = at_work()
        _, once = through([Noise(deviation=0.2)], client, trained)
        _, twice = through([Noise(deviation=0.2), Noise(deviation=0.2)], client, trained)
        second = torch.randn(trained.parameters.shape, generator=KEY.child("upload", 1, "noise").torch())
        torch.testing.assert_close(twice.flat - once.flat, 0.2 * second, rtol=1e-4, atol=1e-6)

    def test_in_a_federation_every_client_has_its_own_in_every_round(self):
        noises, federation = {}, make_federation(recipe=recipe_of({"kind": "noise", "deviation": 0.1}))
        plain = replace(federation.engine.clients, recipe=Recipe())
        train = federation.engine.train

        def listening(tasks, states):
            for task, (update, state) in zip(tasks, train(tasks, states), strict=True):
                quiet, _ = plain.work(task, {})
                noises[task.round, task.client] = update.extras["upload/weights"] - quiet.weights.flat
                yield update, state

        federation.engine.train = listening
        played(federation, 2)
        assert len(noises) == 8
        for (number, client), noise in noises.items():
            key = federation.key.child("round", number, "client", client).child("upload", 0).child("noise")
            expected = 0.1 * torch.randn(noise.shape, generator=key.torch())
            torch.testing.assert_close(noise, expected, rtol=1e-4, atol=1e-6)
        assert len({tuple(noise.tolist()) for noise in noises.values()}) == 8

    def test_statistics_without_noise_are_refused(self, out):
        sentence = "the BatchNorm statistics of 'norm' would travel without noise; give the model another norm"
        with pytest.raises(ConfigError, match=f"^method.upload noise: {sentence}$"):
            Noise(deviation=1.0).check(CheckContext(BANK, Sgd(), has_validation=False))
        Noise(deviation=1.0).check(CheckContext(make_bank(), Sgd(), has_validation=False))
        method = tiny_method("fedavg", upload=[{"kind": "noise", "deviation": 0.1}])
        models = {"norm": {"arch": "resnet8", "width": 2}}
        told = refused_run(method, out, data={"name": "digits"}, models=models)
        assert told == f"method.upload noise: {sentence}"


def largest(update, number):
    """Where the largest changes are, one after another; of equal ones the first."""
    left, places = list(enumerate(np.abs(update))), []
    for _ in range(number):
        best = max(left, key=lambda pair: (pair[1], -pair[0]))
        left.remove(best)
        places.append(best[0])
    return sorted(places)


class TestTopK:
    @pytest.mark.parametrize("prototype", PROTOTYPES)
    @pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 1.0])
    def test_sends_the_largest_changes_and_keeps_the_others(self, prototype, share):
        client, trained = at_work(prototype)
        packed, came = through([TopK(share=share)], client, trained)
        update = (trained.parameters - client.task.weights.parameters).numpy()
        places = largest(update, max(1, round(share * len(update))))
        assert packed.tensors["places"].tolist() == places
        assert packed.tensors["values"].tolist() == update[places].tolist()
        assert torch.equal(packed.tensors["statistics"], trained.buffers)
        expected, left = client.task.weights.parameters.numpy().copy(), update.copy()
        for place in places:
            expected[place] += update[place]
            left[place] = 0
        assert came.parameters.tolist() == expected.tolist()
        assert torch.equal(came.buffers, trained.buffers)
        assert packed.state["0/error"].tolist() == left.tolist()

    @pytest.mark.parametrize("prototype", PROTOTYPES)
    def test_nothing_is_lost_over_the_rounds(self, prototype):
        """All that was sent and the error that is left are all updates together."""
        sent, made, state = 0.0, 0.0, {}
        for seed in range(6):
            client, trained = at_work(prototype, state=state, seed=seed)
            packed, came = through([TopK(share=0.2)], client, trained)
            sent = sent + doubles(came.parameters) - doubles(client.task.weights.parameters)
            made = made + doubles(trained.parameters) - doubles(client.task.weights.parameters)
            state = packed.state
        assert np.abs(doubles(state["0/error"])).max() > 0.1
        np.testing.assert_allclose(sent + doubles(state["0/error"]), made, rtol=1e-5, atol=1e-5)

    def test_errors_of_the_past_are_among_the_candidates(self):
        client, trained = at_work()
        places = torch.arange(len(trained.parameters))
        error = torch.where(places == 7, 100.0, 0.0)
        packed, _ = through([TopK(share=0.001)], at_work(state={"0/error": error})[0], trained)
        assert packed.tensors["places"].tolist() == [7]
        assert client.state == {}

    def test_without_feedback_the_rest_is_forgotten(self):
        client, trained = at_work()
        packed, _ = through([TopK(share=0.2, error_feedback=False)], client, trained)
        assert packed.state == {}

    def test_of_equal_changes_the_first_are_sent(self):
        layout = BANK.layout("mlp")
        received = Weights(torch.zeros(layout.size), layout)
        signs = torch.where(torch.arange(layout.size) % 2 == 0, 0.5, -0.5)
        client = replace(at_work()[0], task=Task(1, 0, "mlp", received))
        packed, _ = through([TopK(share=0.25)], client, Weights(signs, layout))
        assert packed.tensors["places"].tolist() == list(range(round(0.25 * layout.size)))

    def test_bytes(self):
        federation = make_federation(bank=BANK, recipe=recipe_of({"kind": "top_k", "share": 0.25}))
        (record,) = played(federation, 1).server.history
        sizes = [BANK.layout(prototype) for prototype in PROTOTYPES]
        each = [8 * round(0.25 * s.parameter_count) + 4 * (s.size - s.parameter_count) for s in sizes]
        assert record.bytes_up == 2 * sum(each)

    @pytest.mark.parametrize(
        "bend_places",
        [
            lambda places: places + 10_000,
            lambda places: places - 10_000,
            lambda places: places.float(),
            lambda places: places.double(),
        ],
    )
    def test_places_that_are_not_there_are_refused_and_the_round_goes_on(self, bend_places):
        heard = Recorder()

        def bend(pairs):
            for update, state in pairs:
                if update.client == 1:
                    places = bend_places(update.extras["upload/places"])
                    update = replace(update, extras={**update.extras, "upload/places": places})
                yield update, state

        recipe = recipe_of({"kind": "top_k"})
        after = played(make_federation(recipe=recipe, bend=bend, listener=heard), 1)
        (record,) = after.server.history
        assert record.refused == (1,)
        (told,) = heard.of("update_refused")
        assert told["reason"].startswith("extra 'upload/places' is ")
        silent = played(make_federation(recipe=recipe, bend=lambda ps: [p for p in ps if p[0].client != 1]), 1)
        assert after.server.weights["mlp"].equals(silent.server.weights["mlp"])
        assert set(after.clients) == {0, 2, 3}, "what a refused client kept is forgotten"


class TestPartial:
    LINK = Partial(names="^layers")

    @pytest.mark.parametrize("prototype", PROTOTYPES)
    def test_only_matching_names_travel(self, prototype):
        client, trained = at_work(prototype)
        packed, came = through([self.LINK], client, trained)
        for name in trained:
            source = trained if name.startswith("layers") else client.task.weights
            assert torch.equal(came[name], source[name])
        shared = [trained[name].reshape(-1) for name in trained if name.startswith("layers")]
        own = [trained[name].reshape(-1) for name in trained if not name.startswith("layers")]
        assert torch.equal(packed.tensors["shared"], torch.cat(shared))
        assert torch.equal(packed.state["0/own"], torch.cat(own))

    def test_the_servers_rest_stays_and_clients_go_on_with_their_own(self):
        """Two rounds against plain clients that are given, by hand, the server's body with their own head."""
        federation = make_federation(bank=BANK, recipe=recipe_of({"kind": "partial", "names": "^layers"}))
        plain = replace(federation.engine.clients, recipe=Recipe())
        start, prototypes = federation.start(), federation.prototypes
        own = {client: start.server.weights[prototypes[client]] for client in range(4)}
        snapshot = start
        for number in (1, 2):
            before, snapshot = snapshot, federation.advance(snapshot)
            trained = {}
            for client, prototype in enumerate(prototypes):
                server = before.server.weights[prototype]
                tensors = [(server if n.startswith("layers") else own[client])[n].reshape(-1) for n in server]
                task = Task(number, client, prototype, Weights(torch.cat(tensors), server.layout))
                trained[client] = own[client] = plain.work(task, {})[0].weights
                head = [own[client][n].reshape(-1) for n in server if not n.startswith("layers")]
                assert torch.equal(snapshot.clients[client]["upload/0/own"], torch.cat(head))
            for prototype in PROTOTYPES:
                group = [client for client in range(4) if prototypes[client] == prototype]
                sizes = np.array([8 + 3 * client for client in group], dtype=float)
                for name, tensor in snapshot.server.weights[prototype].items():
                    if not name.startswith("layers"):
                        assert torch.equal(tensor, start.server.weights[prototype][name])
                        continue
                    mean = sum(s * doubles(trained[c][name]) for s, c in zip(sizes, group, strict=True)) / sizes.sum()
                    np.testing.assert_allclose(tensor.numpy(), mean, rtol=1e-5, atol=1e-6)
        heads = {tuple(snapshot.clients[client]["upload/0/own"].tolist()) for client in range(4)}
        assert len(heads) == 4

    def test_bytes_are_those_of_what_is_shared(self):
        federation = make_federation(recipe=recipe_of({"kind": "partial", "names": "classifier"}))
        (record,) = played(federation, 1).server.history
        assert record.bytes_up == 4 * 4 * CLASSES * (5 + 1)
        assert record.bytes_down == 4 * 4 * federation.bank.layout("mlp").size

    @pytest.mark.parametrize(("names", "found"), [("encoder", "no parameter"), ("layers|class", "every parameter")])
    def test_patterns_that_share_nothing_or_everything_are_refused(self, names, found, out):
        method = tiny_method("fedavg", upload=[{"kind": "partial", "names": names}])
        assert refused_run(method, out) == f"method.upload partial: '{names}' is found in {found} of 'mlp'"

    def test_what_is_no_pattern_is_refused(self):
        with pytest.raises(ValueError, match=r"'lay\(' is no regular expression"):
            Partial(names="lay(")
        with pytest.raises(ConfigError, match=r"'lay\(' is no regular expression"):
            tiny_config(tiny_method("fedavg", upload=[{"kind": "partial", "names": "lay("}]))


class TestTogether:
    @pytest.mark.parametrize("prototype", PROTOTYPES)
    def test_half_after_top_k(self, prototype):
        """Values and statistics take 2 bytes, places 4; what arrives has been rounded once."""
        client, trained = at_work(prototype)
        packed, came = through([TopK(share=0.3), HalfPrecision()], client, trained)
        update = (trained.parameters - client.task.weights.parameters).numpy()
        places = largest(update, round(0.3 * len(update)))
        sizes = {name: tensor.numel() * tensor.element_size() for name, tensor in packed.tensors.items()}
        assert sizes == {
            "values": 2 * len(places), "places": 4 * len(places), "statistics": 2 * len(trained.buffers)
        }  # fmt: skip
        expected = client.task.weights.parameters.numpy().copy()
        expected[places] += update[places].astype(np.float16).astype(np.float32)
        assert came.parameters.tolist() == expected.tolist()
        assert came.buffers.tolist() == trained.buffers.numpy().astype(np.float16).astype(np.float32).tolist()

    def test_clip_then_noise_then_half(self):
        client, trained = at_work(length=3.0)
        packed, came = through([Clip(norm=1.0), Noise(deviation=0.05), HalfPrecision()], client, trained)
        assert packed.tensors["weights"].dtype == torch.float16
        before, after = doubles(client.task.weights.flat), doubles(trained.flat)
        clipped = before + (after - before) / np.linalg.norm(after - before)
        noise = torch.randn(trained.flat.shape, generator=KEY.child("upload", 1, "noise").torch())
        expected = clipped + 0.05 * doubles(noise)
        np.testing.assert_allclose(doubles(came.flat), expected, rtol=2**-11 + 1e-5, atol=1e-6)

    @pytest.mark.parametrize("link", [Clip(norm=0.1), Noise(deviation=0.5)])
    def test_what_never_leaves_the_client_is_neither_clipped_nor_noisy(self, link):
        client, trained = at_work(length=3.0)
        packed, _ = through([link, Partial(names="^layers")], client, trained)
        own = [trained[name].reshape(-1) for name in trained if not name.startswith("layers")]
        assert torch.equal(packed.state["1/own"], torch.cat(own))

    def test_two_bytes_for_each_number_behind_clip_and_noise(self):
        links = [{"kind": "clip", "norm": 1.0}, {"kind": "noise", "deviation": 0.01}, {"kind": "half"}]
        federation = make_federation(recipe=recipe_of(*links))
        (record,) = played(federation, 1).server.history
        assert record.bytes_up == 4 * 2 * federation.bank.layout("mlp").size
        assert record.refused == ()

    @pytest.mark.parametrize(
        ("links", "sentence"),
        [
            (
                [{"kind": "one_bit"}, {"kind": "clip", "norm": 1.0}],
                "method.upload[1] clip works on weights, but what travels there is bits, values, exact",
            ),
            (
                [{"kind": "half"}, {"kind": "top_k"}, {"kind": "partial", "names": "layers"}],
                "method.upload[2] partial works on weights, but what travels there is values, places, statistics",
            ),
            (
                [{"kind": "partial", "names": "layers"}, {"kind": "one_bit"}],
                "method.upload[1] one_bit works on weights, but what travels there is shared",
            ),
        ],
    )
    def test_a_link_that_does_not_find_its_payload_is_named(self, links, sentence, out):
        assert refused_run(tiny_method("fedavg", upload=links), out) == sentence

    def test_updates_of_weights_are_not_made_of_predictions(self):
        method = tiny_method("feded-w0", upload=[{"kind": "top_k"}])
        with pytest.raises(ConfigError, match="top_k works on whole models of fixed widths, which protocol pred"):
            tiny_config(method)

    @pytest.mark.parametrize(
        ("parts", "reason"),
        [
            (
                {"name": "local-only", "upload": [{"kind": "half"}]},
                "upload half has nothing to pack: protocol nothing sends nothing",
            ),
            (
                {"name": "fedavg", "upload": [{"kind": "soft_labels"}]},
                "upload soft_labels packs probabilities, but protocol weights sends none",
            ),
            (
                {"name": "fedmd", "upload": [{"kind": "soft_labels"}]},
                "upload soft_labels packs probabilities, but protocol predictions sends none",
            ),
            (
                {"name": "fedma", "upload": [{"kind": "top_k"}]},
                "upload top_k works on whole models of fixed widths, which protocol layers with merge matched does not",
            ),
            (
                {"name": "fedma", "protocol": {"kind": "weights"}, "upload": [{"kind": "half"}, {"kind": "one_bit"}]},
                "upload one_bit works on whole models of fixed widths, which protocol weights with merge matched does",
            ),
        ],
    )
    def test_links_that_do_not_fit_the_method_are_refused(self, parts, reason):
        with pytest.raises(ConfigError, match=reason):
            validate({"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}, "method": parts})

    def test_half_halves_layers_too(self):
        """FedMA's rounds; label counts travel beside the payload, as they are."""
        recipe = METHODS["fedma"].recipe.model_copy(update={"upload": (HalfPrecision(),)})
        federation, sent = make_federation(bank=make_bank(mlp=Mlp(hidden=(5, 4))), recipe=recipe), []
        train = federation.engine.train
        federation.engine.train = lambda tasks, states: (sent.append(tasks), train(tasks, states))[1]
        after = played(federation, 3)
        widths = [len(sent[stage][0].extras[f"merge/matched/layers.{i}.weight"]) for stage, i in ((1, 1), (2, 3))]
        layers = [5 * (FEATURES + 1), 4 * (widths[0] + 1), CLASSES * (widths[1] + 1)]
        ups = [4 * 2 * layers[0], 4 * 2 * layers[1], 4 * (2 * layers[2] + 4 * CLASSES)]
        assert [record.bytes_up for record in after.server.history] == ups
        assert all(record.refused == () for record in after.server.history)
        assert not after.server.weights["mlp"].equals(federation.start().server.weights["mlp"])

    def test_fedaux_in_half_precision(self):
        """Weights take half the bytes; scores travel beside them, as they are, and the same ones."""
        parts = {key: part for key, part in tiny_method("fedaux").items() if key != "name"}
        full, half = (
            played(make_federation(recipe=Recipe.model_validate({**parts, "upload": links}), source=40), 3)
            for links in ([], [{"kind": "half"}])
        )
        size, scores = BANK.layout("mlp").size, 40 - 8
        assert [r.bytes_up for r in full.server.history] == [4 * 4 * (size + scores), 4 * 4 * size, 4 * 4 * size]
        assert [r.bytes_up for r in half.server.history] == [
            4 * (2 * size + 4 * scores), 4 * 2 * size, 4 * 2 * size
        ]  # fmt: skip
        assert all(record.refused == () for record in half.server.history)
        told = [name for name in half.server.memory["scores"] if "certainty_scores" in name]
        assert len(told) == 4
        assert all(torch.equal(half.server.memory["scores"][n], full.server.memory["scores"][n]) for n in told)


PREDICTIONS = {
    "protocol": {"kind": "predictions", "distillation": {"epochs": 1}},
    "scores": "entropy",
    "fuse": {"kind": "prediction_distillation", "distiller": {"steps": 3, "batch_size": 8, "keep": "last"}},
}
WHOLE = {
    "clip": ([{"kind": "clip", "norm": 0.05}], {}),
    "noise": ([{"kind": "noise", "deviation": 0.05}], {}),
    "half": ([{"kind": "half"}], {}),
    "bfloat16": ([{"kind": "half", "type": "bfloat16"}], {}),
    "one_bit": ([{"kind": "one_bit"}], {}),
    "top_k": ([{"kind": "top_k", "share": 0.2}], {}),
    "partial": ([{"kind": "partial", "names": "classifier"}], {}),
    "soft_labels": ([{"kind": "soft_labels", "bits": 2}], PREDICTIONS),
    "predictions in half": ([{"kind": "half"}], PREDICTIONS),
    "clip, noise, half": (
        [{"kind": "clip", "norm": 0.05}, {"kind": "noise", "deviation": 0.05}, {"kind": "half"}], {}
    ),
    "clip, top_k, half": ([{"kind": "clip", "norm": 0.5}, {"kind": "top_k", "share": 0.2}, {"kind": "half"}], {}),
    "partial, half": ([{"kind": "partial", "names": "classifier"}, {"kind": "half"}], {}),
}  # fmt: skip


def whole(name, bend=None):
    """Two architectures; BatchNorm in one of them, where the links allow it."""
    links, parts = WHOLE[name]
    other = Mlp(hidden=(4, 3)) if any(link["kind"] == "noise" for link in links) else TinyNorm()
    return make_federation(bank=make_bank(mlp=Mlp(hidden=(5,)), other=other), recipe=recipe_of(*links, **parts),
                           source=20, bend=bend)  # fmt: skip


def contents(snapshot):
    """All that goes on to the next round, and all that was measured."""
    server = snapshot.server
    tensors = {("weights", p): weights.flat for p, weights in server.weights.items()}
    tensors |= {("memory", part, n): t for part, own in server.memory.items() for n, t in own.items()}
    tensors |= {("client", client, n): t for client, own in snapshot.clients.items() for n, t in own.items()}
    return tensors, without_seconds([record.to_json() for record in server.history])


def assert_same(one, other):
    (tensors, records), (others, other_records) = contents(one), contents(other)
    assert records == other_records
    assert tensors.keys() == others.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == others[name].dtype
        assert torch.equal(tensor, others[name]), name


@pytest.mark.parametrize("name", WHOLE)
class TestInAFederation:
    def test_it_makes_a_difference_and_everybody_is_heard(self, name):
        _, parts = WHOLE[name]
        federation = whole(name)
        packed, plain = played(federation, 2), played(replace_links(federation, parts), 2)
        assert all(record.refused == () for record in packed.server.history)
        assert any(not packed.server.weights[p].equals(plain.server.weights[p]) for p in plain.server.weights)
        assert all(weights.is_finite() for weights in packed.server.weights.values())

    def test_a_resumed_run_ends_with_the_same_bits(self, name, tmp_path):
        straight = played(whole(name), 2)
        halfway = through_a_checkpoint(played(whole(name), 1), tmp_path)
        assert_same(played(whole(name), 1, halfway), straight)

    def test_the_order_of_answers_does_not_matter(self, name):
        assert_same(played(whole(name, bend=lambda pairs: pairs[::-1]), 2), played(whole(name), 2))


def replace_links(federation, parts):
    return make_federation(bank=federation.bank, recipe=recipe_of(**parts), source=20)


@pytest.mark.parametrize(
    ("name", "tensor", "dtype"),
    [
        ("clip", "weights", torch.float64),
        ("clip", "weights", torch.int64),
        ("one_bit", "bits", torch.float32),
        ("soft_labels", "codes", torch.float32),
    ],
)
def test_a_payload_of_another_type_is_refused_and_the_round_goes_on(name, tensor, dtype):
    """As weights of another type are that travel without any link; client 0 is the one whose type a mean would take."""

    def bend(pairs):
        for update, state in pairs:
            if update.client == 0:
                bent = update.extras[f"upload/{tensor}"].to(dtype)
                update = replace(update, extras={**update.extras, f"upload/{tensor}": bent})
            yield update, state

    after = played(whole(name, bend=bend), 1)
    assert after.server.history[0].refused == (0,)
    assert all(weights.flat.dtype == torch.float32 for weights in after.server.weights.values())
