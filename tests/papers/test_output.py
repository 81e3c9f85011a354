from __future__ import annotations

import csv
import io
from dataclasses import replace

from fedfuse import Provenance
from fedfuse.core.origin import Origin
from fedfuse.report.intervals import Interval
from fedfuse_papers.claims import Verdict
from fedfuse_papers.ledger import Ledger, Row
from fedfuse_papers.numbers import Printed
from fedfuse_papers.output import csv_text, header, lines, markdown
from fedfuse_papers.store import Measured

RUNS = {0: "a" * 20, 1: "b" * 20}
LEDGER = Ledger(
    name="feddf/table2",
    title="A table",
    scale="small",
    unit="%",
    seeds=[0, 1],
    rows=[
        Row({"method": "FedAvg", "norm": "a|b"}, Printed(76.01, 1.53), {0: Measured(70.0), 1: Measured(72.0)}, RUNS),
        Row({"method": "FedDF", "norm": "BN"}, Printed(80.0, None), {0: Measured(8, is_bound=True)}, {0: "c" * 20}),
        Row({"method": "FedMA", "norm": "GN"}, None, {}, {}),
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
    births=[
        Provenance("2026-01-30", Origin("1.0", "0123456789ab", "2.5", "3.11", "a processor")),
        Provenance("2026-02-01", Origin("1.0", "0123456789ab", "2.5", "3.11", "a processor")),
        Provenance("2026-02-03", Origin("1.1", None, "2.5", "3.11", "another")),
        Provenance("2026-02-03", Origin("1.1", "fedcba9876543+", "2.5", "3.11", "another")),
    ],
)


def test_markdown() -> None:
    assert markdown(LEDGER) == (
        "## A table\n\n"
        "`feddf/table2` at scale small; numbers are in %, mean ± std over seeds.\n\n"
        "| method | norm | printed | ours | seeds | difference | runs |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
        "| FedAvg | a\\|b | 76.01 ± 1.53 | 71.00 ± 1.41 | 2 | -5.01 | `aaaaaaaa` `bbbbbbbb` |\n"
        "| FedDF | BN | 80 | ≥ 8.00 | 1 | -72.00 | `cccccccc` |\n"
        "| FedMA | GN | - | - | 0 | - | - |\n\n"
        "| verdict | printed | ours | 95 % interval | seeds | claim |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "| not enough seeds | +4.68 | +2.00 | -0.48 to +4.48 | 3 | FedDF is above FedAvg (BN, FedDF / FedAvg) |\n\n"
        "A note.\n\n"
        "    fedfuse reproduce feddf/table2 --scale small --seeds 0,1\n\n"
        "- Run 2026-01-30 to 2026-02-01 with fedfuse 1.0 at commit 01234567, torch 2.5, on a processor.\n"
        "- Run 2026-02-03 with fedfuse 1.1, torch 2.5, on another.\n"
        "- Run 2026-02-03 with fedfuse 1.1 at commit fedcba98 and changes, torch 2.5, on another.\n"
        "- `runs`: the first 8 digits of each run's hash, seed by seed; `-`: not run.\n"
    )


def test_csv_has_plain_numbers() -> None:
    first, second, third = csv.DictReader(io.StringIO(csv_text(LEDGER)))
    assert first["norm"] == "a|b"
    assert [float(first[key]) for key in ("printed", "printed_std", "ours")] == [76.01, 1.53, 71]
    assert abs(float(first["ours_std"]) - 2**0.5) < 1e-4
    assert (first["seeds"], first["difference"], first["lower_bound"]) == ("2", "-5.01", "no")
    assert first["runs"].split() == list(RUNS.values())
    assert (second["printed_std"], second["lower_bound"]) == ("", "yes")
    assert [third[key] for key in ("printed", "ours", "difference")] == ["", "", ""]


def test_near_is_within_two_printed_deviations_and_asked_at_paper_scale_only() -> None:
    rows = [
        Row({"cell": "near"}, Printed(76.0, 1.5), {0: Measured(73.0)}, {}),
        Row({"cell": "far"}, Printed(76.0, 1.5), {0: Measured(72.9)}, {}),
        Row({"cell": "no deviation"}, Printed(76.0, None), {0: Measured(76.0)}, {}),
        Row({"cell": "not run"}, Printed(76.0, 1.5), {}, {}),
    ]
    small = replace(LEDGER, rows=rows)
    paper = replace(small, scale="paper")
    assert header(paper) == (*header(small), "within 2 std")
    assert [line[-1] for line in lines(paper)] == ["yes", "no", "-", "-"]
    assert [line[:-1] for line in lines(paper)] == lines(small)
