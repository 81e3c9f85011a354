"""Whole numbers on a grid: against sums of Python's own integers, and the limits of what a sum may be."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.weights import NOTHING, Weights
from fedfuse.federation.sums.settings import SecureSums
from fedfuse.federation.sums.summation import SUMMAND, Summation, UnsoundSumError, residues
from fedfuse.parts.local import ControlVariates
from fedfuse.parts.merge import Mean
from fedfuse.parts.protocol.base import Expected
from tests.helpers import make_bank, make_recipe, make_update, make_weights

BANK = make_bank()
LAYOUT = BANK.layout("mlp")
EXPECTED = Expected(layout=LAYOUT)
UNIFORM = Mean(weighting="uniform")


def summation(merge=UNIFORM, clients=4, local=None, **settings):
    parts = {"merge": merge} if local is None else {"merge": merge, "local": local}
    return Summation(SecureSums(**settings), make_recipe(upload=(), **parts), clients)


def task(client=0):
    return Task(1, client, "mlp", make_weights(BANK, "mlp", seed=100))


def updates(number=4, scale=1.0, **more):
    start = task().weights
    moved = [start.flat + scale * (make_weights(BANK, "mlp", seed=s).flat - start.flat) for s in range(number)]
    return [make_update(Weights(flat, LAYOUT), s, examples=5 + 3 * s, **more) for s, flat in enumerate(moved)]


def total_of(how, given):
    total = residues(how.summand(given[0], task()).extras[SUMMAND]).copy()
    for update in given[1:]:
        total += residues(how.summand(update, task(update.client)).extras[SUMMAND])
    return total


def by_hand(values, settings):
    """Python's own integers: to the nearest, halves to the even one, within the range."""
    step = Fraction(settings.range) / 2 ** (settings.bits - 1)
    return [max(-settings.largest, min(settings.largest, round(Fraction(v) / step))) for v in values.tolist()], step


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bits", [8, 24, 32])
def test_the_mean_is_that_of_pythons_own_integers(weighted, bits):
    how = summation(Mean() if weighted else UNIFORM, bits=bits, range=2.0)
    given = updates()
    sums, heavy = [0] * LAYOUT.size, 0
    for update in given:
        numbers, step = by_hand(update.weights.flat.double() - task().weights.flat.double(), how.settings)
        weight = update.examples if weighted else 1
        sums, heavy = [s + weight * n for s, n in zip(sums, numbers, strict=True)], heavy + weight
    one = how.together(total_of(how, given), [0, 1, 2, 3], task(), EXPECTED, BANK)
    exact = [float(Fraction(x) + step * s / heavy) for x, s in zip(task().weights.flat.tolist(), sums, strict=True)]
    assert torch.equal(one.weights.flat, torch.tensor(exact, dtype=torch.float64).float())
    assert one.examples == heavy


def test_it_is_the_mean_but_for_half_a_step():
    how, given = summation(), updates()
    one = how.together(total_of(how, given), [0, 1, 2, 3], task(), EXPECTED, BANK)
    plain = UNIFORM.average(given)
    assert (one.weights.flat.double() - plain.flat.double()).abs().max() <= how.settings.step / 2 + 1e-7


def test_any_order_gives_the_same_bits():
    how, given = summation(Mean()), updates()
    assert np.array_equal(total_of(how, given), total_of(how, given[::-1]))


def test_what_is_beside_the_payload_counts_once_whoever_has_how_many_examples():
    how = summation(Mean(), local=ControlVariates())
    change = torch.linspace(-1, 1, LAYOUT.parameter_count)
    given = updates(extras={"local/control_change": change})
    one = how.together(total_of(how, given), [0, 1, 2, 3], task(), EXPECTED, BANK)
    assert torch.allclose(one.extras["local/control_change"], 4 * change, atol=2 * how.settings.step)


def test_one_client_moves_a_number_no_further_than_the_range():
    how, given = summation(range=0.5), updates()
    wild = make_update(Weights(given[0].weights.flat + 1e9, LAYOUT), 0)
    one = how.together(total_of(how, [wild, *given[1:]]), [0, 1, 2, 3], task(), EXPECTED, BANK)
    assert (one.weights.flat - task().weights.flat).abs().max() <= 0.5


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_training_left_without_a_number_is_no_change(number):
    how = summation()
    broken = make_update(Weights(torch.full((LAYOUT.size,), number), LAYOUT))
    assert not how.summand(broken, task()).extras[SUMMAND].any()


def test_nothing_else_leaves():
    update = updates(metrics={"loss": 0.3})[1]
    sent = summation(Mean()).summand(update, task(1))
    assert sent.weights is NOTHING
    assert sent.extras.keys() == {SUMMAND}
    assert (sent.examples, sent.metrics) == (1, {})


def test_a_client_counts_for_most_examples_at_most():
    how = summation(Mean(), most_examples=6)
    assert [int(how.summand(update, task()).extras[SUMMAND][0]) for update in updates()] == [5, 6, 6, 6]


@pytest.mark.parametrize(
    ("how", "dtype"),
    [
        (summation(clients=256), torch.int32),
        (summation(clients=257), torch.int64),
        (summation(Mean(), clients=2), torch.int64),
        (summation(clients=100_000, bits=8), torch.int32),
    ],
)
def test_as_few_bytes_as_the_sum_of_everybody_fits_into(how, dtype):
    assert how.dtype == dtype
    limit = 2 ** (31 if dtype == torch.int32 else 63)
    assert how.most < limit
    assert how.spec(EXPECTED, task(), BANK).dtype == dtype
    assert tuple(how.spec(EXPECTED, task(), BANK)) == tuple(how.summand(updates()[0], task()).extras[SUMMAND].shape)


@pytest.mark.parametrize("weight", [0, 3, 4 * 65536 + 1, -1])
def test_examples_that_nobody_can_have_are_no_sum(weight):
    how = summation(Mean())
    total = total_of(how, updates())
    total[0] = np.int64(weight).astype(np.uint64)
    with pytest.raises(UnsoundSumError, match="a number that they cannot have"):
        how.together(total, [0, 1, 2, 3], task(), EXPECTED, BANK)


@pytest.mark.parametrize("merge", [UNIFORM, Mean()])
def test_numbers_that_nobody_can_have_come_to_are_no_sum(merge):
    how = summation(merge)
    total = total_of(how, updates())
    total[7] = 2 ** (8 * total.itemsize - 1)  # the one number whose absolute value is negative
    with pytest.raises(UnsoundSumError, match="cannot have come to"):
        how.together(total, [0, 1, 2, 3], task(), EXPECTED, BANK)


def test_one_liar_moves_no_mean_beyond_the_range():
    """However few examples it has: whatever it adds, what the others can have come to bounds the sum."""
    how = summation(Mean(), range=0.5)
    total = total_of(how, updates())
    weight, place = int(total[0]), 7
    total[place] = weight * how.settings.largest
    one = how.together(total, [0, 1, 2, 3], task(), EXPECTED, BANK)
    assert float((one.weights.flat - task().weights.flat)[place - 1]) == pytest.approx(0.5, rel=1e-4)
    total[place] += 1
    with pytest.raises(UnsoundSumError, match="cannot have come to"):
        how.together(total, [0, 1, 2, 3], task(), EXPECTED, BANK)


def test_how_many_a_sum_needs():
    settings = SecureSums(least=3, share=0.67)
    assert [settings.needed(asked) for asked in (1, 3, 4, 10, 100)] == [3, 3, 3, 7, 67]
