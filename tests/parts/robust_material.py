"""Clients around a base, some of them anywhere: what robust screens and merges are tried with."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st

from fedfuse.core.weights import Weights
from fedfuse.parts.base import CheckContext
from fedfuse.parts.screen import Screened
from fedfuse.runtime.optimizers import Sgd
from tests.helpers import TinyNorm, make_bank, make_update, make_view, make_weights

BANK = make_bank(mlp=TinyNorm(), other=TinyNorm(width=4))
BASE = make_weights(BANK, "mlp", 7)
COUNT = BASE.layout.parameter_count


def around(number, seed=0, spread=1.0):
    """Honest models: the base, moved by noise; statistics stay positive."""
    random = torch.Generator().manual_seed(seed)
    noise = spread * torch.randn(number, len(BASE.flat), generator=random)
    return [Weights(BASE.flat + torch.where(_is_parameter(), row, row.abs()), BASE.layout) for row in noise]


def anywhere(number, far, seed=0):
    """Hostile models, as far away as one likes."""
    random = torch.Generator().manual_seed(1000 + seed)
    rows = far * torch.randn(number, len(BASE.flat), generator=random)
    return [Weights(torch.where(_is_parameter(), row, row.abs()), BASE.layout) for row in rows]


def _is_parameter():
    return torch.arange(len(BASE.flat)) < COUNT


def updates_of(models, examples=None, prototype="mlp"):
    examples = examples or [10] * len(models)
    return [
        make_update(one, client=10 + place, examples=number, prototype=prototype)
        for place, (one, number) in enumerate(zip(models, examples, strict=True))
    ]


def view_of(**more):
    return make_view(BANK, {"mlp": BASE, "other": make_weights(BANK, "other", 8)}, **more)


def rows(models):
    return np.stack([one.flat.double().numpy() for one in models])


def parameters(models):
    return rows(models)[:, :COUNT]


def merged(part, models, examples=None, **view):
    return part.merge(view_of(**view), "mlp", updates_of(models, examples)).weights.flat.double().numpy()


def screened(part, models, **view):
    updates = updates_of(models)
    return part.screen(view_of(**view), Screened(updates, updates))


def places(updates):
    return [update.client - 10 for update in updates]


def check_context(most, has_validation=True):
    by_prototype = most if isinstance(most, dict) else {"mlp": most}
    return CheckContext(BANK, Sgd(), has_validation, most_in_a_round=by_prototype)


HONEST_AND_HOSTILE = st.tuples(
    st.integers(5, 9), st.integers(1, 4), st.sampled_from([1.0, 1e3, 1e9]), st.integers(0, 10**6)
).filter(lambda case: case[1] < case[0] / 2)
"""How many honest models there are, how many hostile ones, how far these are away, and a seed."""
