"""Receipts of simulated clients, from the log of their run."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from fedfuse import DataError, Experiment, FedfuseError, verify_receipts, write_receipts
from fedfuse.core import receipt_lines
from fedfuse.experiment.receipts import check_heard, receipts_sheet
from tests.helpers import events_of

pytestmark = pytest.mark.usefixtures("without_pictures")


@pytest.fixture
def files(config, out, tmp_path):
    Experiment(config()).run(out)
    return write_receipts(out, tmp_path / "receipts")


def test_all_that_the_log_counts_has_a_line(files, out):
    sent = events_of(out, "client_finished")
    found = {verify_receipts(file).clients[0]: verify_receipts(file) for file in files}
    assert found.keys() == {event["client"] for event in sent}
    for client, one in found.items():
        assert one.total["update"] == sum(event["bytes_up"] for event in sent if event["client"] == client)
        assert one.signed == 0
    assert sum(check_heard(file, out) for file in files) == len(sent)
    shown = receipts_sheet(files[0]).text()
    assert "total" in shown
    assert f"{datetime.now(UTC):%Y-%m}" in shown, "a time as people write it"


def test_what_is_cut_off_shows_beside_the_log_of_the_server(files, out):
    twice = next(file for file in files if verify_receipts(file).lines == 2)
    twice.write_bytes(twice.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(DataError, match="round 2: lines were cut off"):
        check_heard(twice, out)


def test_receipts_of_another_run_are_none_for_this(files, out, config, tmp_path):
    """Of a wider model the same rounds have other sizes, and of another party there is nothing to compare."""
    other = tmp_path / "other"
    Experiment(config(models={"mlp": {"arch": "mlp", "hidden": [17]}})).run(other)
    for file in write_receipts(other, tmp_path / "others"):
        with pytest.raises(DataError, match="or are of another run"):
            check_heard(file, out)
    elsewhere = tmp_path / "elsewhere.jsonl"
    elsewhere.write_bytes(rechained(files[0].read_bytes().splitlines(), client=99))
    with pytest.raises(DataError, match="has heard nothing of the party"):
        check_heard(elsewhere, out)


def test_a_file_that_was_cut_before_the_first_answer_shows(files, out):
    """What a node wrote first was who it is."""
    first = files[0].read_bytes().splitlines()[:1]
    files[0].write_bytes(rechained(first, purpose="description"))
    verify_receipts(files[0])
    with pytest.raises(DataError, match=r"round 1.*: lines were cut off"):
        check_heard(files[0], out)


def test_an_answer_that_never_came_needs_no_line(files, out):
    """Of a node that failed, the log says so with a size of nothing."""
    client = verify_receipts(files[0]).clients[0]
    refused = {"event": "update_refused", "round": 7, "client": client, "reason": "its privacy budget is spent"}
    with (out / "events.jsonl").open("a") as log:
        log.write(json.dumps({**refused, "bytes_up": 0, "time": 0}) + "\n")
    assert check_heard(files[0], out) == verify_receipts(files[0]).lines


def test_nothing_can_be_taken_off_the_sum(files):
    files[0].write_bytes(rechained(files[0].read_bytes().splitlines(), records={"update": {"bytes": -5}}))
    with pytest.raises(DataError, match="no receipts"):
        verify_receipts(files[0])


def rechained(lines, **changed):
    """Lines after a change, with sums and chain made whole again, as somebody would who has no key."""
    done, total = [], 0
    for line in lines:
        value = {**json.loads(line), **changed}
        total += value["records"]["update"]["bytes"]
        before = receipt_lines.sha256(done[-1]) if done else receipt_lines.FIRST
        done.append(receipt_lines.as_line({**value, "total": {"update": total}, "before": before}))
    return b"\n".join(done) + b"\n"


def test_a_changed_line_and_a_wrong_sum_show(files):
    twice = next(file for file in files if verify_receipts(file).lines == 2)
    whole = twice.read_bytes()
    twice.write_bytes(whole.replace(b'"round": 1', b'"round": 7', 1))
    with pytest.raises(DataError, match="does not follow"):
        verify_receipts(twice)
    twice.write_bytes(whole.splitlines(keepends=True)[0].replace(b'"total": {"update": ', b'"total": {"update": 1'))
    with pytest.raises(DataError, match="add up"):
        verify_receipts(twice)


def test_nothing_is_overwritten(files, out):
    with pytest.raises(DataError, match="already"):
        write_receipts(out, files[0].parent)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"[" * 100_000, b"\xff\x00", b"{}", b'{"time": 1}'])
def test_what_is_no_file_of_receipts_is_a_sentence(content, tmp_path):
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    with pytest.raises(FedfuseError, match="no receipts"):
        verify_receipts(path)


def test_a_line_without_end_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(receipt_lines, "LONGEST", 100)
    path = tmp_path / "long.jsonl"
    path.write_bytes(b"x" * 1000)
    with pytest.raises(DataError, match="more than 100 bytes"):
        verify_receipts(path)
    with pytest.raises(DataError):
        verify_receipts(tmp_path / "missing.jsonl")


def test_the_last_line_of_a_private_run_has_what_its_client_spent(config, out, tmp_path):
    private = {"training": {"epochs": 1, "batch_size": 4, "privacy": {"norm": 1.0, "multiplier": 2.0}}}
    summary = Experiment(config(**private, privacy={"unit": "example"})).run(out).summary
    spent = summary["privacy"]["against"]["everybody"]["clients"]
    for file in write_receipts(out, tmp_path / "receipts"):
        lines = list(receipt_lines.read_receipts(file))
        assert lines[-1]["privacy"] == {"epsilon": spent[str(lines[-1]["client"])]}
        assert not any("privacy" in line for line in lines[:-1])
        assert f"{lines[-1]['privacy']['epsilon']:.4g}" in receipts_sheet(file).text()
        verify_receipts(file)
