from __future__ import annotations

import csv
import io

from fedfuse.reproduce.claims import Interval, Verdict
from fedfuse.reproduce.ledger import Ledger, Row
from fedfuse.reproduce.numbers import Printed
from fedfuse.reproduce.output import csv_text, markdown
from fedfuse.reproduce.store import Measured

LEDGER = Ledger(
    name="feddf/table2",
    title="A table",
    scale="small",
    unit="%",
    seeds=[0, 1],
    rows=[
        Row({"method": "FedAvg", "norm": "a|b"}, Printed(76.01, 1.53), {0: Measured(70.0), 1: Measured(72.0)}),
        Row({"method": "FedDF", "norm": "BN"}, Printed(80.0, None), {0: Measured(8, is_bound=True)}),
        Row({"method": "FedMA", "norm": "GN"}, None, {}),
    ],
    verdicts=[
        Verdict(
            "FedDF is above FedAvg",
            {"method": "FedDF", "norm": "BN"},
            {"method": "FedAvg", "norm": "BN"},
            4.68,
            Interval(2.0, -0.48414, 4.48414, 3),
            "not enough seeds",
        )
    ],
    notes="A note.",
)


def test_markdown() -> None:
    assert markdown(LEDGER) == (
        "## A table\n\n"
        "`feddf/table2` at scale small; numbers are in %, mean ± std over seeds.\n\n"
        "| method | norm | printed | ours | seeds | difference |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| FedAvg | a\\|b | 76.01 ± 1.53 | 71.00 ± 1.41 | 2 | -5.01 |\n"
        "| FedDF | BN | 80 | ≥ 8.00 | 1 | -72.00 |\n"
        "| FedMA | GN | - | - | 0 | - |\n\n"
        "| verdict | printed | ours | 95 % interval | seeds | claim |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| not enough seeds | +4.68 | +2.00 | -0.48 to +4.48 | 3 | FedDF is above FedAvg (BN, FedDF / FedAvg) |\n\n"
        "A note.\n"
    )


def test_csv_has_plain_numbers() -> None:
    first, second, third = csv.DictReader(io.StringIO(csv_text(LEDGER)))
    assert first["norm"] == "a|b"
    assert [float(first[key]) for key in ("printed", "printed_std", "ours")] == [76.01, 1.53, 71]
    assert abs(float(first["ours_std"]) - 2**0.5) < 1e-4
    assert (first["seeds"], first["difference"], first["lower_bound"]) == ("2", "-5.01", "no")
    assert (second["printed_std"], second["lower_bound"]) == ("", "yes")
    assert [third[key] for key in ("printed", "ours", "difference")] == ["", "", ""]
