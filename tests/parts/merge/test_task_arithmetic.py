"""Task arithmetic against numpy and peft, and its limits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedfuse.parts.merge import TaskArithmetic
from fedfuse.testing import check_part
from tests.parts.merge.material import BASE, assert_averaged_statistics, assert_near, moved, numbers, pefts, trained


@pytest.mark.parametrize("scale", [0.3, 1.0, -0.5])
@pytest.mark.parametrize("form", ["sum", "mean"])
def test_is_the_formula(form, scale):
    models = moved(4)
    vectors = np.stack([numbers(model) - numbers(BASE) for model in models])
    total = vectors.sum(axis=0) if form == "sum" else vectors.mean(axis=0)
    merged = TaskArithmetic(scale=scale, form=form).combine(trained(models))
    assert_near(merged, numbers(BASE) + scale * total)
    assert_averaged_statistics(merged, models)


def test_is_pefts():
    models = moved(3)
    vectors = [model.parameters.double() - BASE.parameters.double() for model in models]
    theirs = pefts().task_arithmetic(vectors, torch.full((3,), 0.4, dtype=torch.float64))
    assert_near(TaskArithmetic(scale=0.4).combine(trained(models)), numbers(BASE) + theirs.numpy())


def test_weights_of_examples():
    models, counts = moved(2), [1.0, 3.0]
    vectors = [numbers(model) - numbers(BASE) for model in models]
    merged = TaskArithmetic(scale=0.5).combine(trained(models, counts))
    assert_near(merged, numbers(BASE) + 0.5 * 2 * (vectors[0] / 4 + 3 * vectors[1] / 4))


def test_scale_zero_is_the_base():
    merged = TaskArithmetic(scale=0.0).combine(trained(moved(3)))
    assert torch.equal(merged.parameters, BASE.parameters)


@pytest.mark.parametrize("form", ["sum", "mean"])
def test_one_model_alone_is_itself(form):
    (model,) = moved(1)
    assert TaskArithmetic(scale=1.0, form=form).combine(trained([model])).equals(model)


def test_order_does_not_matter():
    models = moved(4)
    one, other = (TaskArithmetic().combine(trained(order)) for order in (models, models[::-1]))
    assert_near(one, numbers(other))


def test_keeps_the_laws():
    check_part(TaskArithmetic(), workers=False)


def test_a_whole_step_to_the_mean_is_fedavg():
    check_part(TaskArithmetic(form="mean", scale=1.0, weighting="examples"), equals="fedavg", workers=False)
