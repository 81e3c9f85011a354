from __future__ import annotations

from fedfuse.core.randomness import Key
from fedfuse.federation.clock.availability import Present, draw_present
from fedfuse.federation.clock.devices import Device, DrawnDevices, ListedDevices, SameDevice
from fedfuse.federation.clock.settings import DeviceSettings
from fedfuse.federation.sampling import sample

ALWAYS, LATER, EVENING = (
    Device(1, 1, 1),
    Device(1, 1, 1, 0, ((40.0, 50.0),), 100.0),
    Device(1, 1, 1, 0, ((90.0, 95.0),), 100.0),
)


def test_if_all_are_there_it_is_the_usual_draw():
    for seed in range(5):
        drawn = draw_present(SameDevice(ALWAYS), 50, 7, Key(seed), now=3.0)
        assert drawn == Present(sample(50, 7, Key(seed)))


def test_absent_clients_are_passed_over():
    devices = ListedDevices([ALWAYS, LATER])
    drawn = draw_present(devices, 20, 8, Key(1), now=0.0)
    assert len(drawn.clients) == 8
    assert all(client % 2 == 0 for client in drawn.clients)
    assert drawn.clients == sorted(drawn.clients)
    assert drawn.absent > 0
    assert drawn.waited == 0
    usual = [client for client in sample(20, 8, Key(1)) if client % 2 == 0]
    assert set(usual) <= set(drawn.clients), "whoever of the usual draw is there takes part"


def test_if_few_are_there_all_of_them_take_part():
    drawn = draw_present(ListedDevices([ALWAYS, LATER, LATER, LATER]), 8, 5, Key(1), now=0.0)
    assert drawn.clients == [0, 4]
    assert drawn.absent == 6


def test_if_nobody_is_there_the_server_waits_for_the_first():
    drawn = draw_present(ListedDevices([EVENING, LATER]), 6, 3, Key(1), now=10.0)
    assert drawn.waited == 30.0
    assert drawn.clients == [1, 3, 5]


def test_a_wait_that_is_too_short_to_be_seen_beside_the_time_comes_to_an_end():
    now = 1e17
    device = Device(1, 1, 1, 0, ((0.1, 0.2),), 0.3)
    assert draw_present(SameDevice(device), 3, 1, Key(0), now).clients


class Counting:
    def __init__(self, devices):
        self.devices, self.asked = devices, 0

    def __getitem__(self, client):
        self.asked += 1
        return self.devices[client]


def test_of_a_million_clients_only_a_few_are_looked_at():
    devices = Counting(DrawnDevices(DeviceSettings(present=0.5), 86_400.0, Key(0)))
    drawn = draw_present(devices, 10**6, 20, Key(1), now=0.0)
    assert len(set(drawn.clients)) == 20
    assert devices.asked == 20 + drawn.absent < 100
