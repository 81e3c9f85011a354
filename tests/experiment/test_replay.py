"""The last round of a finished run once more."""

from __future__ import annotations

import pytest
import torch

from fedfuse import Experiment, Key, replay

pytestmark = pytest.mark.usefixtures("without_pictures")


def test_it_gives_the_same_weights_and_the_average_is_what_fedavg_merged(config, out) -> None:
    result = Experiment(config()).run(out)
    last = replay(out)
    assert last.final.sha256() == result.summary["prototypes"]["mlp"]["weights_sha256"]
    assert last.average.equals(last.final)
    assert last.accuracy(last.final) == result.accuracy["mlp"]
    assert [update.client for update in last.updates] == sorted(result.history[-1].clients)


def test_what_models_say_of_test_inputs(config, out) -> None:
    Experiment(config()).run(out)
    last = replay(out)
    inputs = last.test.inputs[:5]
    said = last.probabilities(last.final, inputs)
    assert torch.allclose(said.sum(dim=1), torch.ones(5))
    assert last.features(last.final, inputs).shape == (5, 6)
    first, second = (update.weights for update in last.updates[:2])
    assert torch.allclose(last.mixture([1, 3]).flat, 0.25 * first.flat + 0.75 * second.flat)
    assert len(last.sampled(Key(0))) == 10
    assert sum(last.class_counts(last.updates[0].client)) == last.updates[0].examples
