"""Every epoch visits every example once, and no batch but the only one is a single example."""

from __future__ import annotations

from itertools import islice

import torch
from hypothesis import given
from hypothesis import strategies as st

from fedfuse.core.randomness import Key
from fedfuse.runtime.batches import endless_batches, epoch_batches

SIZES, BATCHES = st.integers(1, 200), st.integers(1, 40)


@given(size=SIZES, batch=BATCHES, seed=st.integers(0, 10))
def test_an_epoch_is_a_permutation(size, batch, seed):
    batches = epoch_batches(size, batch, Key(seed))
    assert sorted(torch.cat(batches).tolist()) == list(range(size))


@given(size=SIZES, batch=st.integers(2, 40))
def test_batch_sizes(size, batch):
    sizes = [len(b) for b in epoch_batches(size, batch, Key(0))]
    rest = size % batch
    if rest == 1 and size > 1 and size > batch:
        assert sizes == [batch] * (size // batch - 1) + [batch + 1]
    else:
        assert sizes == [batch] * (size // batch) + [rest] * (rest > 0)
    assert size == 1 or min(sizes) > 1


def test_the_order_depends_on_the_key_alone():
    one, same, other = (torch.cat(epoch_batches(50, 8, Key(seed))) for seed in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_a_larger_batch_size_cuts_the_same_order():
    assert torch.equal(torch.cat(epoch_batches(50, 8, Key(1))), torch.cat(epoch_batches(50, 50, Key(1))))


def test_endless_batches_are_epochs_with_different_orders():
    batches = list(islice(endless_batches(10, 5, Key(3)), 6))
    epochs = [torch.cat(batches[i : i + 2]).tolist() for i in (0, 2, 4)]
    assert all(sorted(epoch) == list(range(10)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


@given(size=SIZES, batch=BATCHES, seed=st.integers(0, 10))
def test_texts_are_all_visited_in_batches_of_the_usual_sizes(size, batch, seed):
    lengths = torch.randint(1, 60, (size,), generator=Key(seed).torch())
    batches = epoch_batches(size, batch, Key(seed), lengths)
    assert sorted(torch.cat(batches).tolist()) == list(range(size))
    assert sorted(map(len, batches)) == sorted(map(len, epoch_batches(size, batch, Key(seed))))


def test_texts_of_a_batch_are_of_similar_length():
    lengths = torch.randint(1, 100, (2000,), generator=Key(0).torch())

    def padding(batches):
        return sum(int((lengths[where].max() - lengths[where]).sum()) for where in batches)

    assert padding(epoch_batches(2000, 10, Key(1), lengths)) < 0.1 * padding(epoch_batches(2000, 10, Key(1)))


def test_texts_meet_the_same_ones_again_unless_lengths_do_not_count():
    """A client is one window: sorted by length, its texts are cut alike in every epoch."""
    lengths = torch.randint(3, 60, (854,), generator=Key(0).torch())

    def again(*lengths_or_none):
        one, other = (epoch_batches(854, 32, Key(epoch), *lengths_or_none) for epoch in (1, 2))
        pairs = [{(a, b) for where in epoch for a in where.tolist() for b in where.tolist()} for epoch in (one, other)]
        return len(pairs[0] & pairs[1]) / len(pairs[0])

    assert again(lengths) > 0.3
    assert again() < 0.1


def test_batches_of_texts_come_in_an_order_that_the_key_alone_decides():
    lengths = torch.arange(400)
    one, same, other = (epoch_batches(400, 8, Key(seed), lengths) for seed in (1, 1, 2))
    assert torch.equal(torch.cat(one), torch.cat(same))
    assert not torch.equal(torch.cat(one), torch.cat(other))
    means = torch.tensor([float(where.float().mean()) for where in one])
    assert not torch.equal(means, means.sort().values)


def test_texts_of_one_length_are_shuffled():
    order = torch.cat(epoch_batches(400, 8, Key(1), torch.ones(400)))
    assert not torch.equal(order.view(-1, 8).sort().values[:, 0].sort().values, torch.arange(0, 400, 8))
