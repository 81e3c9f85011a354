"""Damage to bytes, texts and values, the same for the same generator."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

SIZES = (0, 1, 127, 128, 255, 256, 32767, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1)
"""Numbers at which something ends."""
NUMBERS = ("-1", "0", "1e999", "nan", "1_000", "0x7f", "9" * 400, "9" * 5000, "1:2:3", ".5", "１２", *map(str, SIZES))
WORDS = (
    "",
    "\0",
    "\ud800",
    "\U0001f600",
    "../../etc/passwd",
    "a" * 3000,
    "é" * 200,
    "\r\n",
    "\x85\u2028",
    "2024-01-01",
    "null",
    "true",
    "~",
)
NOTHING: tuple[str, ...] = ()


def bytes_of(rng: Random, content: bytes) -> bytes:
    """One to four changes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        rng.choice(BYTES)(rng, changed)
    return bytes(changed)


def _span(rng: Random, length: int, most: int = 64) -> slice:
    start = rng.randrange(length + 1)
    return slice(start, start + rng.randrange(1, most))


def _flip(rng: Random, content: bytearray) -> None:
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def _set(rng: Random, content: bytearray) -> None:
    if content:
        content[rng.randrange(len(content))] = rng.choice((0, 1, 10, 32, 34, 127, 128, 254, 255))


def _write_size(rng: Random, content: bytearray) -> None:
    width, order = rng.choice((2, 4, 8)), rng.choice(("little", "big"))
    start = rng.randrange(len(content) + 1)
    content[start : start + width] = (rng.choice(SIZES) % 256**width).to_bytes(width, order)  # type: ignore[arg-type]


def _cut_out(rng: Random, content: bytearray) -> None:
    del content[_span(rng, len(content))]


def _cut_off(rng: Random, content: bytearray) -> None:
    del content[rng.randrange(len(content) + 1) :]


def _repeat(rng: Random, content: bytearray) -> None:
    span = _span(rng, len(content))
    content[span.start : span.start] = content[span] * rng.choice((1, 1, 2, 100))


def _insert(rng: Random, content: bytearray) -> None:
    start = rng.randrange(len(content) + 1)
    content[start:start] = rng.randbytes(rng.randrange(1, 16))


def _blank(rng: Random, content: bytearray) -> None:
    span = _span(rng, len(content), 4096)
    content[span] = bytes(len(content[span]))


BYTES: Sequence[Callable[[Random, bytearray], None]] = (
    _flip,
    _flip,
    _set,
    _write_size,
    _cut_out,
    _cut_off,
    _repeat,
    _insert,
    _blank,
)


def text_of(rng: Random, text: str, words: Sequence[str] = NOTHING) -> str:
    """One to four changes of letters, numbers or lines; ``words`` are those that mean something to the reader."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        text = rng.choice(TEXT)(rng, text, (*WORDS, *NUMBERS, *words, *words))
    return text


def _letters(rng: Random, text: str, _words: Sequence[str]) -> str:
    span = _span(rng, len(text), 8)
    return text[: span.start] + rng.choice(("", "", chr(rng.randrange(1, 0x3000)), ",", "\n", '"')) + text[span.stop :]


def _word(rng: Random, text: str, words: Sequence[str]) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + rng.choice(words) + text[start:]


def _exchange(rng: Random, text: str, words: Sequence[str]) -> str:
    """Another word in the place of one."""
    found = list(re.finditer(r"[\w.-]+", text))
    if not found:
        return rng.choice(words)
    match = rng.choice(found)
    return text[: match.start()] + rng.choice(words) + text[match.end() :]


def _lines(rng: Random, text: str, _words: Sequence[str]) -> str:
    lines = text.splitlines(keepends=True) or [""]
    place, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[place]
        case 1:
            lines.insert(other, lines[place])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case _:
            lines[place] = " " * rng.randrange(5) + lines[place]
    return "".join(lines)


def _damaged(rng: Random, text: str, _words: Sequence[str]) -> str:
    return bytes_of(rng, text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


TEXT: Sequence[Callable[[Random, str, Sequence[str]], str]] = (_letters, _word, _exchange, _exchange, _lines, _damaged)

VALUES: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    1e300,
    10**30,
    10**5000,
    "",
    "a",
    "\ud800",
    "a" * 300,
    b"bytes",
    [],
    [1],
    [[]],
    {},
    {"kind": []},
    {"kind": "a"},
    {"name": []},
    {1: 2},
    {None: None},
    (1, 2),
    {1, 2},
    datetime.date(2024, 1, 1),
    object(),
    *SIZES,
)


def value_of(rng: Random, value: Any, others: Sequence[Any] = ()) -> Any:
    """Mappings and lists with one to four places changed; what stays the same is shared with ``value``."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = _changed(rng, value, (*VALUES, *others))
    return value


def _changed(rng: Random, value: Any, others: Sequence[Any]) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        return _below(rng, value, key, others) if rng.random() < 0.8 else _keys(rng, value, key)
    if isinstance(value, list | tuple) and value and rng.random() < 0.8:
        place = rng.randrange(len(value))
        part = [_changed(rng, value[place], others)] * rng.choice((0, 1, 1, 1, 2))
        return [*value[:place], *part, *value[place + 1 :]]
    if isinstance(value, str) and rng.random() < 0.5:
        return text_of(rng, value)
    return rng.choice((*others, [value], {"kind": value}))


def _below(rng: Random, value: dict[Any, Any], key: Any, others: Sequence[Any]) -> dict[Any, Any]:
    return {**value, key: _changed(rng, value[key], others)}


def _keys(rng: Random, value: dict[Any, Any], key: Any) -> dict[Any, Any]:
    match rng.randrange(4):
        case 0:
            return {other: part for other, part in value.items() if other != key}
        case 1:
            return {**value, key: value[rng.choice(list(value))]}
        case 2:
            return {**value, rng.choice(("kind", "name", "arch", "exchange", "\ud800", 5, None, "a" * 300)): value[key]}
        case _:
            return {**value, text_of(rng, str(key)): value[key]}
