"""Trained models to merge: random weights around a base, and a network to ask."""

from __future__ import annotations

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights, shares
from fedfuse.parts.merge import TrainedModels
from tests.helpers import TinyNorm, make_bank, make_examples, make_weights

BANK = make_bank(norm=TinyNorm())
BASE = make_weights(BANK, "norm", 77)
KEY = Key(4)


def moved(number=3, seed=0):
    """Models that went different ways from the base."""
    random = torch.Generator().manual_seed(seed)
    steps = (0.1 * torch.randn(number, len(BASE.flat), generator=random)).unbind()
    return [Weights(BASE.flat + step.abs().where(_buffers(), step), BASE.layout) for step in steps]


def trained(models, coefficients=None, base=BASE, key=KEY, names=None, score=None, inputs=24):
    return TrainedModels(
        models=models,
        base=base,
        shares=shares(coefficients or [1.0] * len(models)),
        names=names or [str(place) for place in range(len(models))],
        key=key,
        network=lambda weights: BANK.lend("norm", weights),
        batches=lambda _, most: iter(make_examples(min(most, inputs), seed=5).inputs.split(7)),
        score=score,
    )


def numbers(weights):
    """Parameters in numpy's double precision."""
    return weights.parameters.double().numpy()


def assert_near(weights, expected):
    np.testing.assert_allclose(numbers(weights), expected, rtol=3e-7, atol=1e-9)


def assert_averaged_statistics(weights, models):
    expected = np.mean([model.buffers.double().numpy() for model in models], axis=0)
    np.testing.assert_allclose(weights.buffers.double().numpy(), expected, rtol=3e-7)


def pefts():
    """Its functions for merges, without the rest of it, which takes seconds to import."""
    found = find_spec("peft")
    if found is None or found.origin is None:
        pytest.skip("peft is not installed")
    spec = spec_from_file_location("peft_merge_utils", Path(found.origin).parent / "utils" / "merge_utils.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _buffers():
    return torch.arange(len(BASE.flat)) >= BASE.layout.parameter_count
