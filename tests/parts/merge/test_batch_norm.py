"""What becomes of BatchNorm statistics under each policy; the parameters are never touched."""

from __future__ import annotations

import pytest
import torch

from fedfuse.parts.merge import settle
from fedfuse.runtime.batch_norm import REESTIMATION_BATCH
from tests.helpers import TinyNorm, make_bank, make_source, make_update, make_view, make_weights

BANK = make_bank(norm=TinyNorm())
MERGED = make_weights(BANK, "norm", 9)
UPDATES = [make_update(make_weights(BANK, "norm", seed), client=seed, prototype="norm") for seed in (1, 2, 3)]


def settled(policy, source=None):
    return settle(policy, make_view(BANK, source=source), "norm", MERGED, UPDATES)


@pytest.mark.parametrize("policy", ["average", "batch"])
def test_average_and_batch_keep_the_averaged_statistics(policy):
    assert settled(policy).equals(MERGED)


def test_last_takes_the_last_clients_statistics():
    result = settled("last")
    assert torch.equal(result.buffers, UPDATES[-1].weights.buffers)
    assert torch.equal(result.parameters, MERGED.parameters)


def hidden(source):
    """What the norm layer is shown of the whole source."""
    weight, bias = MERGED["layers.1.weight"].double(), MERGED["layers.1.bias"].double()
    return source.raw.double() @ weight.T + bias


@pytest.mark.parametrize(("size", "batches"), [(50, 1), (REESTIMATION_BATCH + 44, 2)])
def test_reestimate_is_the_mean_of_batch_statistics_over_the_source(size, batches):
    """Batches are of equal size, so that the mean is that of all inputs."""
    source = make_source(size)
    result = settled("reestimate", source)
    shown = hidden(source)
    variance = torch.stack([h.var(0, unbiased=True) for h in shown[source.mixed].chunk(batches)]).mean(0)
    assert torch.allclose(result["layers.2.running_mean"].double(), shown.mean(0), rtol=1e-4, atol=1e-5)
    assert torch.allclose(result["layers.2.running_var"].double(), variance, rtol=1e-4, atol=1e-5)
    assert torch.equal(result.parameters, MERGED.parameters)


@pytest.mark.parametrize("over", [2, 4, 32])
def test_a_few_inputs_more_than_a_batch_do_not_bend_the_statistics(over):
    source = make_source(REESTIMATION_BATCH + over)
    result = settled("reestimate", source)
    assert torch.allclose(result["layers.2.running_var"].double(), hidden(source).var(0), rtol=0.02)


def test_reestimate_does_not_depend_on_how_the_source_lies():
    """Sorted along what the first neuron sees, batches in order would each know a part of the range only."""
    source = make_source(3 * REESTIMATION_BATCH)
    along = hidden(source)[:, 0].argsort()
    expected, result = settled("reestimate", source), settled("reestimate", source.part(along))
    assert torch.allclose(result.buffers, expected.buffers, rtol=1e-5)
    assert torch.allclose(result["layers.2.running_var"].double(), hidden(source).var(0), rtol=0.02)


def test_reestimate_does_not_depend_on_the_statistics_before():
    source = make_source(50)
    other = MERGED.with_buffers(MERGED.buffers + 3)
    assert settle("reestimate", make_view(BANK, source=source), "norm", other, UPDATES).equals(
        settled("reestimate", source)
    )


def test_reestimate_gives_the_resident_network_its_momentum_back():
    settled("reestimate", make_source(20))
    model = BANK.lend("norm", MERGED)
    assert model.layers[2].momentum == 0.1


@pytest.mark.parametrize("policy", ["average", "last", "reestimate", "batch"])
def test_a_network_without_buffers_is_left_alone(policy):
    bank = make_bank()
    merged = make_weights(bank, "mlp", 1)
    view = make_view(bank, source=make_source(20))
    assert settle(policy, view, "mlp", merged, [make_update(make_weights(bank, "mlp", 2))]).equals(merged)


def test_reestimate_on_a_source_that_leaves_one_over():
    settled("reestimate", make_source(REESTIMATION_BATCH + 1))
