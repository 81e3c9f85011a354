from __future__ import annotations

import math
import statistics

import pytest

from fedfuse.core.randomness import Key
from fedfuse.federation.clock.devices import Device, DrawnDevices
from fedfuse.federation.clock.settings import DeviceSettings

DAY = 86_400.0


def drawn(**settings):
    return DrawnDevices(DeviceSettings(**settings), DAY, Key(3).child("clock", "device"))


def test_seconds_by_hand():
    device = Device(speed=100, down=10, up=5, latency=0.5)
    assert device.seconds(bytes_down=20, operations=300, bytes_up=20) == 2 * 0.5 + 2 + 3 + 4


def test_twice_the_bandwidth_halves_the_transfer_and_twice_the_speed_the_work():
    slow, fast = Device(speed=100, down=10, up=5), Device(speed=100, down=20, up=10)
    assert slow.seconds(20, 0, 20) == 2 * fast.seconds(20, 0, 20)
    assert Device(50, 1, 1).seconds(0, 70, 0) == 2 * Device(100, 1, 1).seconds(0, 70, 0)


class TestPresence:
    office = Device(1, 1, 1, present=((10.0, 20.0), (50.0, 60.0)), period=100.0)

    @pytest.mark.parametrize(
        ("now", "comes", "leaves"), [(10, 0, 10), (19, 0, 1), (20, 30, 0), (75, 35, 0), (255, 0, 5)]
    )
    def test_by_hand(self, now, comes, leaves):
        assert self.office.comes_in(now) == comes
        assert self.office.leaves_in(now) == leaves

    def test_over_midnight(self):
        night = Device(1, 1, 1, present=((0.0, 20.0), (80.0, 100.0)), period=100.0)
        assert night.leaves_in(90) == 30
        assert night.leaves_in(5) == 15

    def test_one_that_is_always_there(self):
        assert Device(1, 1, 1).comes_in(1e9) == 0
        assert Device(1, 1, 1).leaves_in(1e9) == math.inf
        whole = Device(1, 1, 1, present=((0.0, 100.0),), period=100.0)
        assert whole.leaves_in(40) == math.inf


class TestDrawn:
    def test_a_client_has_the_same_device_whoever_was_asked_before(self):
        devices = drawn()
        late = devices[7]
        assert [drawn()[client] for client in (3, 7)][1] == late
        assert devices[7] == late != devices[8]

    def test_amounts_do_not_depend_on_each_other(self):
        assert drawn(speed=5)[4].up == drawn(speed=6, present=0.5)[4].up

    def test_half_of_the_devices_are_below_the_median(self):
        speeds = [drawn(speed={"kind": "lognormal", "median": 100, "spread": 3})[c].speed for c in range(400)]
        assert 80 < statistics.median(speeds) < 125
        within = sum(100 / 3 < speed < 300 for speed in speeds) / len(speeds)
        assert 0.6 < within < 0.76

    def test_uniform_and_constant(self):
        ups = [drawn(up={"kind": "uniform", "low": 10, "high": 30})[c].up for c in range(200)]
        assert 10 <= min(ups) < 13 < 27 < max(ups) <= 30
        assert drawn(up=7)[0].up == 7

    def test_share_of_the_time(self):
        devices = [drawn(present=0.25)[client] for client in range(200)]
        there = [device.comes_in(now) == 0 for device in devices for now in (0.0, 0.3 * DAY, 5.9 * DAY)]
        assert 0.18 < sum(there) / len(there) < 0.32
        for device in devices:
            assert sum(end - begin for begin, end in device.present) == pytest.approx(0.25 * DAY)
        assert drawn(present=1)[0].present == ()

    def test_nothing_is_made_for_those_who_are_not_asked_for(self):
        assert drawn()[10**6] != drawn()[10**12]
