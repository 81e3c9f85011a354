"""DARE: what is dropped, how much the rest grows, and the merge after it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fedfuse.core.randomness import Key
from fedfuse.parts.merge import Dare, TaskArithmetic, Ties
from fedfuse.parts.merge import piecewise as module
from fedfuse.parts.merge.dare import thinned
from fedfuse.parts.merge.piecewise import Stack, WeightStacks
from fedfuse.testing import check_part
from tests.parts.merge.material import BASE, assert_near, moved, numbers, pefts, trained

WHOLE = TaskArithmetic(scale=1.0)


def stack(size=20_000, models=2):
    random = torch.Generator().manual_seed(3)
    base = torch.randn(size, generator=random).double()
    own = tuple(base + torch.rand(size, generator=random).double() for _ in range(models))
    return Stack("w", base, own, tuple(Key(place) for place in range(models)))


@pytest.mark.parametrize("density", [0.1, 0.7])
def test_numbers_are_dropped_or_grow(density):
    whole = stack()
    for before, after in zip(whole.models, thinned(whole, density).models, strict=True):
        grown = (after - whole.base) / (before - whole.base)
        kept = grown > 0.5
        assert torch.allclose(grown[kept], torch.tensor(1 / density).double())
        assert torch.equal(after[~kept], whole.base[~kept])
        deviation = np.sqrt(density * (1 - density) / len(kept))
        assert abs(float(kept.double().mean()) - density) < 4 * deviation


def test_each_model_has_a_mask_of_its_own():
    whole = stack()
    one, other = ((after != whole.base) for after in thinned(whole, 0.5).models)
    assert abs(float((one == other).double().mean()) - 0.5) < 0.02


def test_is_pefts_with_the_same_masks(monkeypatch):
    models = moved(3)
    part = Dare(density=0.5, then=WHOLE)
    pieces = [thinned(piece, 0.5) for name in BASE.layout.by_name for piece in stacks_of(models, name)]
    masks = iter([torch.cat([p.models[place] != p.base for p in pieces]).double() for place in range(3)])
    vectors = [torch.from_numpy(numbers(model) - numbers(BASE)) for model in models]
    with monkeypatch.context() as patch:
        patch.setattr(torch, "bernoulli", lambda *_, **__: next(masks))
        theirs = pefts().dare_linear(vectors, torch.ones(3, dtype=torch.float64), 0.5)
    assert_near(part.combine(trained(models)), numbers(BASE) + theirs.numpy())


def stacks_of(models, name):
    whole = WeightStacks(trained(models))
    return whole.of(name) if name in whole.names else ()


@pytest.mark.parametrize("then", [WHOLE, TaskArithmetic(form="mean", scale=0.3), Ties(), Ties(trim="tensor")])
def test_density_one_is_the_merge_after_it(then):
    models = moved(3)
    assert Dare(density=1.0, then=then).combine(trained(models)).equals(then.combine(trained(models)))


def test_ties_trims_what_is_left():
    """With most numbers dropped, the largest of what is left are fewer than the density of TIES would keep."""
    models = moved(3)
    merged = Dare(density=0.1, then=Ties(density=0.5)).combine(trained(models))
    moves = numbers(merged) != numbers(BASE)
    assert 0 < moves.mean() < 0.5


def test_the_mean_over_many_masks_is_without_any():
    models = moved(2)
    drawn = [numbers(Dare(density=0.5, then=WHOLE).combine(trained(models, key=Key(seed)))) for seed in range(100)]
    expected = numbers(WHOLE.combine(trained(models)))
    spread = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    assert (np.abs(np.mean(drawn, axis=0) - expected) <= 5 * spread + 1e-9).all()


def test_masks_belong_to_models_and_not_to_places():
    models = moved(3)
    one = Dare().combine(trained(models, names=["a", "b", "c"]))
    other = Dare().combine(trained(models[::-1], names=["c", "b", "a"]))
    assert_near(one, numbers(other))
    assert not one.equals(Dare().combine(trained(models, names=["b", "a", "c"])))


def test_tensors_are_cut_into_pieces(monkeypatch):
    models = moved(3)
    whole = Ties(density=0.3).combine(trained(models))
    monkeypatch.setattr(module, "PIECE", 5)
    assert Ties(density=0.3).combine(trained(models)).equals(whole)


def test_keeps_the_laws():
    check_part(Dare(density=0.5, then=Ties()), workers=False)
