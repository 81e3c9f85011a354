"""Rounds on the clock, computed by hand from what parts send and do."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fedfuse.core.randomness import Key
from fedfuse.federation.clock.clock import Clock
from fedfuse.federation.clock.devices import Device, ListedDevices
from fedfuse.federation.clock.settings import ClockSettings
from fedfuse.federation.clock.work import RoundWork
from fedfuse.federation.state import RoundRecord
from fedfuse.parts.local import ControlVariates
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import CLASSES, FEATURES, Recorder, make_federation, make_recipe, played

HIDDEN = 5
FORWARD = 2 * (FEATURES * HIDDEN + HIDDEN * CLASSES)
PARAMETERS = (FEATURES + 1) * HIDDEN + (HIDDEN + 1) * CLASSES
MODEL = 4 * PARAMETERS
SIZES = [8, 11, 14, 17]
"""Examples of the four clients."""


def clocked(devices, listener=None, recipe=None, rounds=1, clients=4, federation=None, **settings):
    """A federation of the helpers' with these devices, after so many rounds."""
    made = make_federation(recipe=recipe or make_recipe(), clients=clients, listener=listener, **(federation or {}))
    work = RoundWork(made.recipe, made.bank, TrainingSettings(epochs=1, batch_size=4))
    clock = Clock(ClockSettings(server={"speed": 1e6}, **settings), ListedDevices(devices), work)
    return played(replace(made, clock=clock), rounds)


def seconds_of(client, device):
    return device.seconds(MODEL, 3 * FORWARD * SIZES[client], MODEL)


DEVICES = [Device(1e3 * (client + 1), 100, 50, latency=0.25) for client in range(4)]


def test_a_round_takes_as_long_as_its_slowest_client_and_the_merge():
    record = clocked(DEVICES).server.history[0]
    needed = [seconds_of(client, DEVICES[client]) for client in range(4)]
    assert needed[0] == 0.5 + MODEL / 100 + 3 * FORWARD * 8 / 1e3 + MODEL / 50
    assert record.clock.clients == max(needed)
    assert record.clock.server == 4 * 2 * PARAMETERS / 1e6
    assert record.clock.seconds == pytest.approx(max(needed) + record.clock.server)
    assert (record.clock.late, record.clock.left, record.clock.absent, record.clock.waited) == ((), (), 0, 0)


def test_rounds_follow_each_other():
    history = clocked(DEVICES, rounds=3).server.history
    assert [r.clock.total for r in history] == pytest.approx([(i + 1) * history[0].clock.seconds for i in range(3)])


def test_who_sends_more_takes_longer():
    plain = clocked(DEVICES).server.history[0].clock
    more = clocked(DEVICES, recipe=make_recipe(local=ControlVariates())).server.history[0].clock
    slowest = max(range(4), key=lambda client: seconds_of(client, DEVICES[client]))
    extra = MODEL / DEVICES[slowest].down + MODEL / DEVICES[slowest].up
    assert more.clients - plain.clients == pytest.approx(extra, rel=0.01)


def weights_of(snapshot):
    return {name: weights.sha256() for name, weights in snapshot.server.weights.items()}


class TestDeadline:
    slow = (*DEVICES[1:], Device(1, 100, 50))
    """The last client needs hours."""

    def test_late_updates_do_not_count(self):
        heard = Recorder()
        after = clocked(self.slow, listener=heard, deadline=600)
        record = after.server.history[0]
        assert record.clock.late == (3,)
        assert record.clock.clients == 600, "the server waited"
        assert record.refused == ()
        assert record.clients == (0, 1, 2, 3)
        assert record.heard == {0, 1, 2}, "for parts that ask who was here before"
        assert record.bytes_up == 4 * MODEL, "it has sent it all the same"
        assert record.late == (3,)
        (event,) = heard.of("client_late")
        assert event["client"] == 3
        assert event["reason"].startswith("late: needed ")
        assert weights_of(after) != weights_of(clocked(self.slow))

    def test_as_if_the_late_one_had_been_refused(self):
        def refused(answers):
            return [answer for answer in answers if answer[0].client != 3]

        without = clocked_bent(refused)
        assert weights_of(clocked(self.slow, deadline=600)) == weights_of(without)

    def test_one_that_nobody_misses_is_none(self):
        whole, far = clocked(DEVICES, rounds=2), clocked(DEVICES, rounds=2, deadline=1e18)
        assert weights_of(whole) == weights_of(far)
        assert [r.clock for r in whole.server.history] == [r.clock for r in far.server.history]

    def test_a_client_that_needs_just_as_long_is_in_time(self):
        needed = max(seconds_of(client, DEVICES[client]) for client in range(4))
        assert clocked(DEVICES, deadline=needed).server.history[0].clock.late == ()
        assert clocked(DEVICES, deadline=math.nextafter(needed, 0)).server.history[0].clock.late != ()

    def test_if_all_are_late_nothing_is_learnt_and_all_is_said(self):
        heard = Recorder()
        before, after = clocked(DEVICES, rounds=0), clocked(DEVICES, listener=heard, deadline=0.001)
        record = after.server.history[0]
        assert record.clock.late == (0, 1, 2, 3)
        assert record.clock.seconds == 0.001
        assert weights_of(after) == weights_of(before)
        assert len(heard.of("client_late")) == 4

    def test_what_a_late_client_remembers_is_what_it_did_before(self):
        recipe = make_recipe(local=ControlVariates())
        after = clocked(self.slow, recipe=recipe, deadline=600, rounds=2)
        assert sorted(after.clients) == [0, 1, 2]


def clocked_bent(bend):
    federation = make_federation(recipe=make_recipe(), clients=4, bend=bend)
    return played(federation, 1)


class TestPresence:
    def test_who_leaves_before_it_is_ready_does_not_count(self):
        heard = Recorder()
        needed = seconds_of(3, DEVICES[3])
        devices = [*DEVICES[:3], replace(DEVICES[3], present=((0.0, needed - 1),), period=1e6)]
        record = clocked(devices, listener=heard).server.history[0]
        assert record.clock.left == (3,)
        assert record.clock.late == ()
        assert record.clock.clients == max(seconds_of(client, DEVICES[client]) for client in range(3))
        assert record.late == (3,), "one word, and the reason says which of the two it was"
        assert heard.of("client_late")[0]["reason"].startswith("left after ")

    def test_the_server_notices_when_the_last_one_leaves(self):
        devices = [replace(device, present=((0.0, 2.0 + client),), period=1e6) for client, device in enumerate(DEVICES)]
        record = clocked(devices).server.history[0]
        assert record.clock.left == (0, 1, 2, 3)
        assert record.clock.clients == 5.0

    def test_absent_clients_are_not_asked(self):
        devices = [replace(DEVICES[0], present=((5e5, 6e5),), period=1e6), *DEVICES[1:]]
        record = clocked(devices).server.history[0]
        assert record.clients == (1, 2, 3)
        assert record.clock.absent == 1
        assert record.bytes_down == 3 * MODEL

    def test_the_server_waits_for_the_first_to_come(self):
        devices = [replace(device, present=((100.0, 1e6),), period=1e6) for device in DEVICES]
        record = clocked(devices).server.history[0]
        assert record.clock.waited == 100.0
        assert record.clock.total == record.clock.seconds > 100 + record.clock.clients


class TestInvite:
    def test_the_first_to_be_ready_count(self):
        settings = {"clients_per_round": 2}
        record = clocked(DEVICES, federation=settings, invite=2.0).server.history[0]
        needed = sorted((seconds_of(client, DEVICES[client]), client) for client in range(4))
        assert record.clients == (0, 1, 2, 3)
        assert record.clock.late == tuple(sorted(client for _, client in needed[2:]))
        assert record.clock.clients == needed[1][0]


def test_whoever_answers_first_the_time_is_the_same():
    """The order in which an engine hands out answers is all that the clock could learn of it."""
    settings = {"deadline": 30, "invite": 2.0, "federation": {"clients_per_round": 2}, "rounds": 3}
    forth = clocked(DEVICES, **settings)
    settings["federation"] = {**settings["federation"], "bend": lambda answers: answers[::-1]}
    back = clocked(DEVICES, **settings)
    assert [record.clock for record in back.server.history] == [record.clock for record in forth.server.history]
    assert weights_of(back) == weights_of(forth)


def test_a_record_survives_its_file():
    record = clocked(DEVICES, deadline=30).server.history[0]
    assert RoundRecord.from_json(record.to_json()) == record
    assert "clock" not in played(make_federation(), 1).server.history[0].to_json()


def test_pooled_parties_compute_where_the_server_is():
    made = make_federation()
    recipe = make_recipe(pooled=True)
    clock = Clock.of(ClockSettings(server={"speed": 7.0}), RoundWork(recipe, made.bank, None), Key(0))
    assert clock.devices[3].seconds(1e9, 14.0, 1e9) == 2.0


@pytest.mark.parametrize("examples", [0, -3, "many", None, 1.5, math.nan, True, 10**30])
def test_a_nonsense_count_is_refused_and_costs_its_way_alone(examples):
    """Its answer travelled, and nobody knows how long it worked."""
    heard = Recorder()

    def bend(answers):
        return [(replace(u, examples=examples) if u.client == 1 else u, state) for u, state in answers]

    record = clocked(DEVICES, heard, federation={"bend": bend}).server.history[0]
    (refused,) = heard.of("update_refused")
    assert refused["client"] == 1
    assert "examples" in refused["reason"]
    assert (record.refused, record.heard) == ((1,), {0, 2, 3})
    assert record.clock.clients == max(seconds_of(client, DEVICES[client]) for client in (0, 2, 3))


def test_the_most_examples_that_are_believed_are_not_listed():
    def bend(answers):
        return [(replace(u, examples=10**12, metrics={}) if u.client == 1 else u, state) for u, state in answers]

    record = clocked(DEVICES, federation={"bend": bend, "claims": "taken"}).server.history[0]
    assert record.clock.clients > 1e9


def test_who_claims_far_more_examples_than_the_others_does_not_stop_the_clock():
    def bend(answers):
        return [(replace(u, examples=10**12, metrics={}) if u.client == 1 else u, state) for u, state in answers]

    honest = clocked(DEVICES).server.history[0]
    record = clocked(DEVICES, federation={"bend": bend}).server.history[0]
    assert record.clock.clients < 100 * honest.clock.clients


def test_nobody_takes_less_than_no_time():
    def bend(answers):
        return [(replace(u, metrics={"steps": -1e9}) if u.client == 0 else u, state) for u, state in answers]

    devices = [DEVICES[0]]
    record = clocked(devices, clients=1, federation={"bend": bend}).server.history[0]
    assert record.clock.clients == devices[0].seconds(MODEL, 0, MODEL)
