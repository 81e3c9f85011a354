"""The store of clients' states: exact after anything, and bounded on the disk and in memory."""

from __future__ import annotations

import os
import random

import pytest
import torch

from fedfuse.federation.state_store import StateStore, StoredStates, forget_segments_after

SIZE = 100
"""Numbers in a state."""


def state_of(client, number):
    return {"local/c": torch.full((SIZE,), float(1000 * number + client)), "n": torch.tensor(number)}


def fresh(folder):
    return StoredStates(StateStore(folder), 0)


def on_disk(folder):
    return sum(path.stat().st_size for path in folder.iterdir()) if folder.exists() else 0


def assert_states(states, expected):
    """``expected`` has the round of each client's latest state."""
    assert dict.fromkeys(states) == dict.fromkeys(expected)
    assert len(states) == len(expected)
    for client, number in expected.items():
        found, wanted = states[client], state_of(client, number)
        assert set(found) == set(wanted)
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
        assert client in states
    assert states.get(10**6, {}) == {}


def test_nobody_with_a_state_costs_no_file(tmp_path):
    states = fresh(tmp_path / "clients").after(1, ((client, {}) for client in range(5)))
    assert not (tmp_path / "clients").exists()
    assert_states(states, {})


def test_a_state_that_becomes_empty_is_forgotten_and_stays_so(tmp_path):
    states = fresh(tmp_path).after(1, [(0, state_of(0, 1)), (1, state_of(1, 1))]).after(2, [(1, {})])
    assert_states(states, {0: 1})
    assert_states(StoredStates(StateStore.opened(tmp_path, 2, ()), 2), {0: 1})


def test_states_of_an_earlier_round_are_not_mistaken_for_the_present_ones(tmp_path):
    before = fresh(tmp_path).after(1, [(0, state_of(0, 1))])
    before.after(2, [(0, state_of(0, 2))])
    with pytest.raises(LookupError, match="after round 1 are gone"):
        before.get(0)


def test_a_round_that_fails_leaves_everything_as_it_was(tmp_path):
    states = fresh(tmp_path).after(1, [(0, state_of(0, 1))])
    before = sorted(tmp_path.iterdir())

    def failing():
        yield 0, state_of(0, 2)
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        states.after(2, failing())
    assert sorted(tmp_path.iterdir()) == before
    assert_states(states, {0: 1})
    assert_states(states.after(2, [(0, state_of(0, 2))]), {0: 2})


def test_who_is_heard_twice_in_a_round_keeps_the_later_state(tmp_path):
    states = fresh(tmp_path).after(1, [(0, {"x": torch.ones(3)}), (0, state_of(0, 1)), (1, state_of(1, 1))])
    assert_states(states, {0: 1, 1: 1})
    assert_states(StoredStates(StateStore.opened(tmp_path, 1, ()), 1), {0: 1, 1: 1})


@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(("clients", "heard"), [(1, 1), (6, 6), (20, 5), (40, 3)])
def test_after_any_kill_the_states_of_each_kept_checkpoint_are_there(tmp_path, clients, heard, every):
    """Every checkpoint that is kept is opened after every round, as if the process had just been killed."""
    draw, states, latest, checkpoints = random.Random(0), fresh(tmp_path), {}, {}
    for number in range(1, 60):
        chosen = sorted(draw.sample(range(clients), heard))
        states = states.after(number, [(client, state_of(client, number)) for client in chosen])
        latest |= dict.fromkeys(chosen, number)
        if number % every == 0:
            checkpoints = dict([*checkpoints.items(), (number, (dict(latest), states.store.tally))][-2:])
            states.store.keep(list(checkpoints))
        for checkpoint, (expected, tally) in checkpoints.items():
            opened = StateStore.opened(tmp_path, checkpoint, list(checkpoints))
            assert opened.tally == tally
            assert_states(StoredStates(opened, checkpoint), expected)
        assert_states(states, latest)


@pytest.mark.parametrize("every", [1, 7])
def test_a_run_that_is_resumed_again_and_again_has_the_states_of_one_that_is_not(tmp_path, every):
    draw, latest, done = random.Random(1), {0: {}}, 0
    order = [sorted(draw.sample(range(12), 4)) for _ in range(80)]
    states, number = fresh(tmp_path), 0
    while number < 70:
        number += 1
        states = states.after(number, [(client, state_of(client, number)) for client in order[number]])
        latest[number] = {**latest[number - 1], **dict.fromkeys(order[number], number)}
        if number % every == 0:
            states.store.keep([round_ for round_ in (done, number) if round_])
            done = number
        if draw.random() < 0.3:  # killed here: the rounds since the checkpoint are played again
            forget_segments_after(tmp_path, done)
            states = StoredStates(StateStore.opened(tmp_path, done, [done]), done) if done else fresh(tmp_path)
            number = done
        assert_states(states, latest[number])


@pytest.mark.parametrize(("clients", "heard"), [(5, 5), (30, 10), (60, 4)])
def test_the_disk_holds_at_most_some_three_times_what_is_alive(tmp_path, clients, heard):
    draw, states, latest, written, piece = random.Random(2), fresh(tmp_path), {}, 0, 0
    rounds = 150
    for number in range(1, rounds + 1):
        chosen = sorted(draw.sample(range(clients), heard))
        states = states.after(number, [(client, state_of(client, number)) for client in chosen])
        newest = tmp_path / f"round-{number:06d}.states"
        written += newest.stat().st_size
        piece = piece or newest.stat().st_size / heard
        latest |= dict.fromkeys(chosen, number)
        states.store.keep([max(number - 1, 1), number])
        # twice what is alive, and what two more rounds replaced that the older checkpoint still needs
        assert on_disk(tmp_path) <= piece * (2.1 * len(latest) + 4 * heard) + 1000
    assert written <= 2.1 * piece * heard * rounds, "states are moved at most as often as they are written"


def test_a_states_memory_is_its_own(tmp_path):
    """No mapped files, whose pages would count as this process's."""
    states = fresh(tmp_path).after(1, [(0, state_of(0, 1))])
    found = states[0]
    os.truncate(tmp_path / "round-000001.states", 0)
    assert torch.equal(found["local/c"], state_of(0, 1)["local/c"])
