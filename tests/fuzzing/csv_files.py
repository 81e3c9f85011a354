"""Tables in CSV."""

from __future__ import annotations

from random import Random

from tests.fuzzing.mutation import text_of
from tests.fuzzing.place import written
from tests.fuzzing.tables import load_file

WORDS = (
    "label",
    "text",
    ",label",
    ",",
    '"',
    "\n",
    "\r",
    "\n\n",
    ";",
    "999999999",
    "x,x",
    "2024-01-01",
    "true",
    "\ufeff",
    "yes",
    "?",
    "NA",
    "1,5",
    "1.234,5",
    "\t",
    "|",
    ";;",
)
MARKS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"\xff\xfe\x00\x00")
SETTINGS: tuple[dict[str, object], ...] = (
    {},
    {},
    {"empty_cells": "fill", "empty_values": ["?"]},
    {"empty_cells": "fill", "encoding": "latin-1", "normalisation": "training"},
    {"categories": ["a"], "client_column": "who"},
    {"header": False, "label_column": 3, "separator": ";"},
    {"decimal": ",", "labels": {"0": "no", "1": "yes", "B": "no"}},
)


def honest() -> list[bytes]:
    numbers = "".join(f"{number},{number / 7},who{number % 3},{number % 2}\n" for number in range(12))
    texts = "".join(f'"it is, {number}\nlines",{number % 3}\n' for number in range(9))
    words = "".join(f"{number},5;{'fmx'[number % 3]};7;{str(number % 2 == 0).lower()};B\n" for number in range(9))
    words = words.replace("x;7;true;B", "x;7;true;M")
    wide = ",".join(f"c{number}" for number in range(300))
    return [
        f"a,b,who,label\n{numbers}".encode().replace(b"who", b"7"),
        f"text,label\n{texts}".encode(),
        f"{wide},label\n{'1,' * 300}0\n{'2,' * 300}1\n".encode(),
        "größe,label\n1,0\n2,1\n".encode(),
        f"a;sex;who;smoker;label\n{words}".encode(),
        f"a\tsex\twho\tsmoker\tlabel\n{words.replace(';', chr(9))}".encode("utf-16"),
    ]


def mutate(rng: Random, case: bytes) -> bytes:
    """Sometimes the bytes that say how a text is encoded, and not the text."""
    wide = case.startswith(MARKS[0])
    text = text_of(rng, case.decode("utf-16" if wide else "utf-8"), WORDS)
    changed = text.encode("utf-16" if wide else "utf-8", "surrogatepass")
    return rng.choice(MARKS) + changed if rng.random() < 0.05 else changed


def read(case: bytes) -> None:
    """In one of several ways, which the case itself decides."""
    path = written("table.csv", case)
    load_file("csv", path, **SETTINGS[sum(case) % len(SETTINGS) if case not in honest() else 0])
