"""fedfuse audit: a table beside the run, or all findings for a program."""

from __future__ import annotations

import json

import pytest

from fedfuse import Experiment
from tests.cli.test_cli import in_process, only_sentence

__all__ = ["in_process"]

pytestmark = pytest.mark.usefixtures("without_pictures")


def test_it_prints_a_table_and_what_it_is_about_or_json(config, out, in_process):
    Experiment(config(partition={"kind": "iid", "clients": 2})).run(out)
    printed = in_process("audit", str(out)).stdout
    assert "final model mlp" in printed
    assert "members: the parties' training examples" in printed
    found = json.loads(in_process("audit", str(out), "--json").stdout)
    assert found["findings"][0]["attack"] == "loss"
    assert {one["what"] for one in found["clients"]} <= {"client 0", "client 1"}


def test_a_wrong_number_of_shadows_and_a_folder_without_a_run_are_sentences(out, in_process):
    assert "pairs" in only_sentence(in_process("audit", str(out.parent), "--shadows", "3"))
    only_sentence(in_process("audit", str(out)))
