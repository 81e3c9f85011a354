"""What Ray says of a lost machine, in a line."""

from __future__ import annotations

from types import SimpleNamespace

from fedfuse.engines.ray.briefly import speak_briefly


def test_a_line_remains_of_a_dump():
    printed = []
    worker = SimpleNamespace(print_to_stdstream=lambda message, **_: printed.append(message))
    ray = SimpleNamespace(_private=SimpleNamespace(worker=worker))
    for _ in range(2):
        speak_briefly(ray)  # a second run in the same process
    dump = "Raylet is terminated. Last 20 lines of its log:\n" + "    state\n" * 20
    worker.print_to_stdstream({"lines": [dump], "pid": "raylet", "is_err": False}, ignore_prefix=False)
    said = ["Raylet is terminated. Last 20 lines of its log:"]
    assert printed == [{"lines": said, "pid": "raylet", "is_err": True}]


def test_a_ray_that_prints_otherwise_is_left_alone():
    speak_briefly(SimpleNamespace(_private=SimpleNamespace(worker=SimpleNamespace())))
    speak_briefly(SimpleNamespace())
