"""Tables in CSV."""

from __future__ import annotations

from random import Random

from fedfuse.data.row_numbers import row_numbers
from fedfuse.data.settings import DataSettings
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
)


def honest() -> list[bytes]:
    numbers = "".join(f"{number},{number / 7},who{number % 3},{number % 2}\n" for number in range(12))
    texts = "".join(f'"it is, {number}\nlines",{number % 3}\n' for number in range(9))
    wide = ",".join(f"c{number}" for number in range(300))
    return [
        f"a,b,who,label\n{numbers}".encode().replace(b"who", b"7"),
        f"text,label\n{texts}".encode(),
        f"{wide},label\n{'1,' * 300}0\n{'2,' * 300}1\n".encode(),
        "größe,label\n1,0\n2,1\n".encode(),
    ]


def mutate(rng: Random, case: bytes) -> bytes:
    return text_of(rng, case.decode(), WORDS).encode("utf-8", "surrogatepass")


def read(case: bytes) -> None:
    path = written("table.csv", case)
    row_numbers(DataSettings(name="csv", path=str(path)))
    load_file("csv", path)
