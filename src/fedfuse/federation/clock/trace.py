"""Devices from a file, a row each: what a measurement of real ones has left.

    speed,down,up,latency,present
    2.1e9,1.5e6,4e5,0.08,0-28800 79200-86400

or a JSON object in each line, with ``present`` as a list of pairs. Latency is 0 and presence is always where a row does
not say it.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fedfuse.core.errors import ConfigError, shortened
from fedfuse.federation.clock.devices import Device, Interval, ListedDevices

RATES, OPTIONAL = ("speed", "down", "up"), ("latency", "present")


def read_trace(path: Path, period: float) -> ListedDevices:
    """The devices of a file."""
    if path.suffix not in (".csv", ".jsonl"):
        raise ConfigError(f"federation.clock.trace: {path} is neither .csv nor .jsonl")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"federation.clock.trace: {path} cannot be read ({error})") from None
    devices = []
    for number, row in _rows(path, text.splitlines()):
        try:
            devices.append(_device(row, period))
        except ValueError as error:
            raise ConfigError(f"federation.clock.trace: {path}, line {number}: {shortened(str(error), 200)}") from None
    if not devices:
        raise ConfigError(f"federation.clock.trace: {path} has no devices")
    return ListedDevices(devices)


def _rows(path: Path, lines: list[str]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Every row with the number of its line."""
    if path.suffix == ".csv":
        table = csv.DictReader(lines, restval="", restkey="more")
        try:
            yield from ((table.line_num, {key: value for key, value in row.items() if value != ""}) for row in table)
        except csv.Error as error:
            raise ConfigError(f"federation.clock.trace: {path}, line {table.line_num}: {error}") from None
        return
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, _object(path, number, line)


def _object(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"federation.clock.trace: {path}, line {number} is not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ConfigError(f"federation.clock.trace: {path}, line {number} is not an object with speed, down and up")
    return row


def _device(row: Mapping[str, Any], period: float) -> Device:
    for name in row:
        if name not in (*RATES, *OPTIONAL):
            raise ValueError(f"unknown column {name!a}; there are {', '.join((*RATES, *OPTIONAL))}")
    for name in RATES:
        if name not in row:
            raise ValueError(f"{name} is missing")
    speed, down, up = (_number(name, row[name], above=True) for name in RATES)
    latency = _number("latency", row.get("latency", 0), above=False)
    return Device(speed, down, up, latency, _presence(row.get("present"), period), period)


def _number(name: str, value: Any, above: bool) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name} is {value!r}, but should be a number") from None
    if not math.isfinite(number) or number < 0 or (above and number == 0):
        raise ValueError(f"{name} is {number:g}, but should be {'above 0' if above else '0 or more'}")
    return number


def _presence(value: Any, period: float) -> tuple[Interval, ...]:
    if value is None:
        return ()
    pairs = [pair.split("-") for pair in value.split()] if isinstance(value, str) else value
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs) or not pairs:
        raise ValueError(f"present is {value!r}, but should be like 0-28800 79200-86400, or a list of pairs")
    intervals = [(_number("present", b, above=False), _number("present", e, above=True)) for b, e in pairs]
    _check_order(intervals, period)
    return tuple(_joined(intervals))


def _check_order(intervals: Iterable[Interval], period: float) -> None:
    before = 0.0
    for begin, end in intervals:
        if not before <= begin < end <= period:
            raise ValueError(
                f"present has {begin:g}-{end:g}, but should go up from 0 to the period, {period:g}, without overlaps"
            )
        before = end


def _joined(intervals: Iterable[Interval]) -> list[Interval]:
    """Stretches that touch, as one."""
    joined: list[Interval] = []
    for begin, end in intervals:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined
