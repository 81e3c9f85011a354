"""Tables of runs for people, papers and programs: the numbers are those of the runs, whatever they are called."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from statistics import fmean, stdev

import pytest
from benchmarks.report.runs import Made, write_run
from scipy import stats

import fedfuse
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.looking.comparison import Comparison
from fedfuse.experiment.looking.tables import comparison_sheet, csv_text, same_examples


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("study")
    for seed in range(3):
        write_run(folder / f"a{seed}", Made("fedavg", seed, rounds=80, level=0.8))
        write_run(folder / f"b{seed}", Made("feddf", seed, rounds=80, level=0.9, bytes_per_round=2000))
    return fedfuse.load_runs(folder)


def last(comparison: Comparison, method: str) -> tuple[float, ...]:
    (row,) = [row for row in comparison.rows if row.method == method]
    assert row.accuracy_last is not None
    return row.accuracy_last.values


@pytest.mark.parametrize("interval", ["95", "std", "none"])
def test_what_stands_behind_the_sign_is_what_the_title_says(study: Comparison, interval: str) -> None:
    values = [100 * value for value in last(study, "fedavg")]
    reach = {"95": stats.t.ppf(0.975, 2) * stats.sem(values), "std": stdev(values), "none": None}[interval]
    words = {"95": "mean ± 95 % interval", "std": "mean ± std", "none": "mean"}[interval]
    text = study.table("text", interval=interval)  # type: ignore[arg-type]
    assert text.splitlines()[0] == f"3 seeds, {words}"
    behind = "" if reach is None else f" ± {reach:.2f}"
    assert f" {fmean(values):.2f}{behind} " in text


def test_digits_and_columns_are_those_that_were_asked_for(study: Comparison) -> None:
    table = study.table("md", columns=["accuracy_last", "seeds"], digits=1, interval="none")
    head, border, first, *_ = table.splitlines()
    assert head == "| method | accuracy last, % | seeds |"
    assert border == "| --- | ---: | ---: |"
    assert first == f"| FedAvg | {100 * fmean(last(study, 'fedavg')):.1f} | 3 |"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ["acuracy_last"]}, "unknown column 'acuracy_last' \\(did you mean 'accuracy_last'"),
        ({"interval": "90"}, "unknown interval '90'"),
        ({"digits": 11}, "11 digits after the point cannot be; give 0 to 10"),
        ({"format": "html"}, "unknown format 'html'"),
        ({"reference": "fedbe", "columns": ["difference"]}, "unknown method 'fedbe'"),
        ({"curves": True}, "curves are for programs: give csv or json, not text"),
        ({"reference": "feddf"}, "reference= is what the column 'difference' is from; name it among columns="),
        ({"format": "csv", "columns": ["seeds"]}, "columns= changes nothing in csv, which has every number in full"),
        ({"format": "json", "digits": 1}, "digits= changes nothing in json"),
        ({"format": "csv", "interval": "std"}, "interval= changes nothing in csv"),
        ({"format": "csv", "reference": "feddf"}, "reference= changes nothing in csv"),
    ],
)
def test_what_there_is_not_is_refused_in_one_sentence(study: Comparison, options: dict, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        study.table(**options)


def test_the_best_of_a_column_is_bold_and_what_is_spent_is_not_ranked(study: Comparison) -> None:
    (better,) = [line for line in study.table("md").splitlines() if line.startswith("| FedDF")]
    assert better.count("**") == 6  # last, best, rounds to target
    assert "FedAvg | **" not in study.table("md")
    assert study.table("latex").count("\\textbf{") == 3


def test_only_rows_about_the_same_examples_are_ranked(tmp_path: Path) -> None:
    write_run(tmp_path / "a", Made("fedavg", name="one", level=0.3))
    write_run(tmp_path / "b", Made("feddf", name="one", level=0.5))
    write_run(tmp_path / "c", Made("fedavg", name="two", level=0.9, data_sha256="2" * 64))
    found = fedfuse.load_runs(tmp_path)
    assert same_examples(found.lines) == [[0, 1], [2]]
    ranked = {row for row, _ in comparison_sheet(found).best}
    assert ranked <= {0, 1}
    assert ranked


def test_latex_prints_any_name_as_it_is(tmp_path: Path) -> None:
    hostile = r"a_b%c$d&e#f{g}h~i^j\k<l>…"
    run = write_run(tmp_path / "a", Made("fedavg", name="one"))
    write_run(tmp_path / "b", Made("fedavg", name="two"))
    config = run.config.read_text().replace("name: one\n", f"name: '{hostile}'\n")
    run.config.write_text(config)
    latex = fedfuse.load_runs(tmp_path).table("latex")
    body = latex.split("\\midrule")[1].split("\\bottomrule")[0]
    first = body.split("&", 1)[0] if "\\&" not in body else body.strip().split(" & ")[0]
    for sign in "_%$&#{}":
        assert f"\\{sign}" in first
    assert not re.search(r"(?<!\\)[%#]", first)
    assert "\\textbackslash{}" in first
    assert first.count("\\textasciitilde{}") == first.count("\\textasciicircum{}") == 1
    assert latex.startswith("% 1 seed; needs \\usepackage{booktabs}\n\\begin{tabular}{llrrrrrr}")


def test_markdown_takes_no_name_for_its_own(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", Made("fedavg", name="one"))
    write_run(tmp_path / "b", Made("fedavg", name="two"))
    hostile = "<img src=x> | [a](b) `c` *d*"
    run.config.write_text(run.config.read_text().replace("name: one\n", f"name: '{hostile}'\n"))
    (line,) = [line for line in fedfuse.load_runs(tmp_path).table("md").splitlines() if "img" in line]
    assert "<" not in line
    assert len(re.findall(r"(?<!\\)\|", line)) == len(re.findall(r"(?<!\\)\|", "| a | b | 1 | 2 | 3 | 4 | 5 | 6 |"))
    assert re.search(r"\\\[a\\\]\(b\) \\`c\\` \\\*d\\\*", line)


def test_csv_has_a_line_for_every_method_model_and_seed_in_plain_numbers(study: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(study.table("csv"))))
    assert [row["method"] for row in rows] == ["fedavg"] * 3 + ["feddf"] * 3
    assert [row["seed"] for row in rows] == ["0", "1", "2"] * 2
    assert [float(row["accuracy_last"]) for row in rows[:3]] == list(last(study, "fedavg"))
    assert rows[0]["ensemble_accuracy"] == ""


def test_curves_have_every_round_and_sums_of_what_was_spent(study: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(study.table("csv", curves=True))))
    assert len(rows) == 2 * 3 * 80
    own = [row for row in rows if row["method"] == "feddf" and row["seed"] == "1"]
    history = study.lines[1].runs[1].result.history
    assert [float(row["accuracy"]) for row in own] == [record.prototypes["mlp"].accuracy for record in history]
    assert int(own[-1]["bytes_up_sum"]) == sum(record.bytes_up for record in history)
    assert float(own[-1]["seconds_sum"]) == pytest.approx(sum(record.seconds for record in history))


def test_a_spreadsheet_computes_no_name() -> None:
    (_, row) = csv_text([{"method": "=1+1", "variant": "@x", "value": -0.5}]).splitlines()
    assert row == "'=1+1,'@x,-0.5"


def test_json_has_rows_differences_and_remarks(study: Comparison) -> None:
    value = json.loads(study.table("json", curves=True))
    assert value["reference"] == "fedavg"
    assert [row["method"] for row in value["rows"]] == ["fedavg", "feddf"]
    assert value["rows"][0]["difference"] is None
    assert value["rows"][1]["difference"]["verdict"] == "better"
    assert len(value["curves"]) == 480


def test_the_difference_is_in_the_table_where_it_is_asked_for(study: Comparison) -> None:
    table = study.table("md", columns=["accuracy_last", "difference"])
    own = [100 * (one - other) for one, other in zip(last(study, "feddf"), last(study, "fedavg"), strict=True)]
    low, high = stats.t.interval(0.95, 2, fmean(own), stats.sem(own))
    assert f"| {fmean(own):+.1f} \\[{low:.1f}, {high:.1f}\\] better |" in table
    assert "differences from fedavg, seed by seed, with 95 % intervals; better or worse after Holm's" in table


def test_metrics_are_columns_too(tmp_path: Path) -> None:
    config = {"data": {"name": "blobs", "examples": 90}, "models": {"net": {"arch": "mlp"}}}
    measured = {"metrics": ["macro_f1"], "pictures": False}
    result = fedfuse.run(config, federation={"rounds": 1}, out=tmp_path, evaluation=measured)
    table = fedfuse.load_runs(tmp_path).table("md", columns=["macro_f1", "macro_f1_best"], digits=3)
    value = 100 * result.summary["prototypes"]["net"]["metrics"]["macro_f1"]["last"]
    assert f"| FedAvg | {value:.3f} | {value:.3f} |" in table


def test_budgets_as_rows_the_best_first(study: Comparison) -> None:
    first, second = study.within("bytes", 16 * 2000 * 80)
    assert (first["name"], second["name"]) == ("FedDF", "FedAvg")
    assert first["accuracy"] == pytest.approx(fmean(last(study, "feddf")))
    assert first["low"] < first["accuracy"] < first["high"]
    assert [row["accuracy"] for row in study.within("bytes", 1)] == [None, None]
    with pytest.raises(ConfigError, match="unknown axis 'bites'"):
        study.within("bites", 1)  # type: ignore[arg-type]
