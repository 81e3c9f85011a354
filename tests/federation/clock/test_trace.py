from __future__ import annotations

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.federation.clock.devices import Device
from fedfuse.federation.clock.trace import read_trace

CSV = "speed,down,up,latency,present\n2e9,1e6,5e5,0.1,0-30 70-90 90-100\n1e9,2e6,1e6,,\n"
JSON = '{"speed": 2e9, "down": 1e6, "up": 5e5, "latency": 0.1, "present": [[0, 30], [70, 90], [90, 100]]}\n\n'
JSON += '{"up": 1e6, "down": 2e6, "speed": 1e9}\n'


def written(tmp_path, text, name="devices.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(("name", "text"), [("devices.csv", CSV), ("devices.jsonl", JSON)])
def test_a_row_is_a_device_and_clients_beyond_the_last_begin_again(tmp_path, name, text):
    devices = read_trace(written(tmp_path, text, name), period=100.0)
    first = Device(2e9, 1e6, 5e5, 0.1, ((0.0, 30.0), (70.0, 100.0)), 100.0)
    second = Device(1e9, 2e6, 1e6, 0.0, (), 100.0)
    assert [devices[client] for client in range(4)] == [first, second, first, second]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("speed,down\n1,2\n", "line 2: up is missing"),
        ("speed,down,up\n", "has no devices"),
        ("", "has no devices"),
        ("speed,down,up,cores\n1,2,3,4\n", "line 2: unknown column 'cores'; there are speed, down, up, latency"),
        ("speed,down,up\n1,2,3,4\n", "line 2: unknown column 'more'"),
        ("speed,down,up\n1,2,3\n1,two,3\n", "line 3: down is 'two', but should be a number"),
        ("speed,down,up\n0,2,3\n", "line 2: speed is 0, but should be above 0"),
        ("speed,down,up\nnan,2,3\n", "line 2: speed is nan, but should be above 0"),
        ("speed,down,up,latency\n1,2,3,-1\n", "line 2: latency is -1, but should be 0 or more"),
        ("speed,down,up,present\n1,2,3,5\n", "line 2: present is '5', but should be like 0-28800"),
        (
            "speed,down,up,present\n1,2,3,50-20\n",
            "line 2: present has 50-20, but should go up from 0 to the period, 100",
        ),
        ("speed,down,up,present\n1,2,3,0-20 10-30\n", "line 2: present has 10-30, but should go up"),
        ("speed,down,up,present\n1,2,3,0-200\n", "line 2: present has 0-200, but should go up"),
    ],
)
def test_a_wrong_file_gets_one_sentence_with_its_line(tmp_path, text, sentence):
    with pytest.raises(ConfigError) as caught:
        read_trace(written(tmp_path, text), period=100.0)
    assert sentence in str(caught.value)
    assert "devices.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "line 1 is not JSON"),
        ("[1, 2]", "line 1 is not an object"),
        ('{"speed": 1, "down": 1, "up": 1, "present": []}', "present is [], but should be like"),
        ('{"speed": 1, "down": 1, "up": null}', "up is None, but should be a number"),
    ],
)
def test_wrong_lines_of_json(tmp_path, text, sentence):
    with pytest.raises(ConfigError) as caught:
        read_trace(written(tmp_path, text, "devices.jsonl"), period=100.0)
    assert sentence in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"is neither \.csv nor \.jsonl"):
        read_trace(tmp_path / "devices.txt", 1.0)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_trace(tmp_path / "devices.csv", 1.0)
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_trace(tmp_path / "bytes.csv", 1.0)
