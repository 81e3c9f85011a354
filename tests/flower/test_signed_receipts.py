"""Signed receipts: every way to change them shows, or the check says what it cannot know."""

from __future__ import annotations

import json
import stat

import pytest

from fedfuse.core.errors import DataError
from fedfuse.core.receipt_lines import as_line, sha256, verify_receipts
from fedfuse.experiment.receipts import check_heard
from fedfuse.federation.engine import QuorumError
from fedfuse.flower.receipt_keys import receipt_key
from fedfuse.flower.receipts import read_receipts, write_receipt
from fedfuse.flower.server import run_on
from tests.flower.federation import flower_config, grid_for
from tests.helpers import events_of, tiny_method

RECORDS = {"arrays": {"bytes": 7, "sha256": "0" * 64, "arrays": []}}


def write(path, signer, rounds=(1, 2, 3), client: int = 1) -> list[bytes]:
    for number in rounds:
        write_receipt(path, {"client": client, "run": 5, "round": number, "purpose": "update"}, RECORDS, signer)
    return path.read_bytes().splitlines()


@pytest.fixture
def signer(tmp_path):
    return receipt_key(tmp_path / "node")


@pytest.fixture
def path(tmp_path, signer):
    file = tmp_path / "client-1.jsonl"
    write(file, signer)
    return file


def put(path, lines) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def rechained(lines, signer=None) -> list[bytes]:
    """The same lines after a change, with the chain made whole again, as a forger would."""
    done: list[bytes] = []
    total = 0
    for line in lines:
        value = {name: inner for name, inner in json.loads(line).items() if name not in ("key", "signature")}
        total += value["records"]["arrays"]["bytes"]
        value |= {"before": sha256(done[-1]) if done else "0" * 64, "total": {"arrays": total}}
        done.append(as_line(value, signer))
    return done


def test_what_is_whole_is_verified_and_still_read_as_before(path, signer):
    found = verify_receipts(path, signer.key)
    assert (found.lines, found.signed, found.keys, found.clients) == (3, 3, (signer.key,), (1,))
    assert found.total == {"arrays": 21}
    assert found.head == sha256(path.read_bytes().splitlines()[-1])
    assert found.cautions == ()
    assert [line["round"] for line in read_receipts(path)] == [1, 2, 3]


@pytest.mark.parametrize("change", ["removed", "first removed", "reordered", "repeated", "changed", "last changed"])
def test_lines_that_were_touched_show(path, change):
    one, two, three = path.read_bytes().splitlines()
    touched = {
        "removed": [one, three],
        "first removed": [two, three],
        "reordered": [two, one, three],
        "repeated": [one, two, two, three],
        "changed": [one, two.replace(b'"round": 2', b'"round": 9'), three],
        "last changed": [one, two, three.replace(b'"round": 3', b'"round": 9')],
    }[change]
    assert touched != [one, two, three]
    put(path, touched)
    with pytest.raises(DataError):
        verify_receipts(path)


def test_every_single_byte_of_the_last_line_counts(path, signer):
    """Nothing follows it that would have its hash; its signature has to do."""
    *before, last = path.read_bytes().splitlines()
    for place in range(0, len(last), 7):
        put(path, [*before, last[:place] + bytes([last[place] ^ 1]) + last[place + 1 :]])
        try:
            found = verify_receipts(path, signer.key)
        except DataError:
            continue
        assert found.lines == 2, "no receipt any more: an unfinished line, which is said"
        assert found.cautions


def test_a_name_that_is_there_twice_is_no_way_in(path):
    *before, last = path.read_bytes().splitlines()
    put(path, [*before, b'{"round": 99, ' + last[1:]])
    with pytest.raises(DataError, match="forged or changed"):
        verify_receipts(path)


def test_a_forger_has_no_key(path, signer, tmp_path):
    lines = path.read_bytes().splitlines()
    put(path, rechained(lines[:2]))
    assert verify_receipts(path).signed == 0, "without signatures anybody can write, and it says that nobody signed"
    with pytest.raises(DataError, match="not signed"):
        verify_receipts(path, signer.key)
    other = receipt_key(tmp_path / "another")
    put(path, rechained(lines, other))
    with pytest.raises(DataError, match="another key"):
        verify_receipts(path, signer.key)
    put(path, [as_line(json.loads(line) | {"key": signer.key, "signature": "00" * 64}) for line in lines[:1]])
    with pytest.raises(DataError, match="forged"):
        verify_receipts(path, signer.key)


def test_signatures_cannot_be_left_out_of_later_lines(path):
    one = path.read_bytes().splitlines()[0]
    put(path, [one])
    write(path, None, rounds=[2])
    with pytest.raises(DataError, match="line 2 is not signed"):
        verify_receipts(path)


def test_receipts_of_an_earlier_version_go_on_signed(tmp_path, signer):
    path = tmp_path / "old.jsonl"
    write(path, None, rounds=[1, 2])
    write(path, signer, rounds=[3])
    found = verify_receipts(path)
    assert (found.lines, found.signed) == (3, 1)


def test_another_partys_lines_are_not_this_ones(tmp_path, signer):
    path = tmp_path / "mixed.jsonl"
    write(path, signer, rounds=[1])
    write(path, signer, rounds=[2], client=2)
    with pytest.raises(DataError, match="of another"):
        verify_receipts(path)


def test_what_is_cut_off_at_the_end_shows_beside_a_hash_that_was_noted(path, signer):
    head = verify_receipts(path).head
    lines = path.read_bytes().splitlines()
    write(path, signer, rounds=[4])
    assert verify_receipts(path, head=head).lines == 4
    put(path, lines[:2])
    assert verify_receipts(path).lines == 2, "by itself it does not show"
    with pytest.raises(DataError, match="cut off"):
        verify_receipts(path, head=head)


def test_a_clock_that_was_set_back_is_said(path, signer):
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    lines[0]["time"] = "2999-01-01T00:00:00+00:00"
    put(path, rechained([as_line(line) for line in lines], signer))
    assert "clock" in verify_receipts(path, signer.key).cautions[0]


def test_two_answers_in_one_round_are_said_unless_they_are_the_same(tmp_path, signer):
    path = tmp_path / "twice.jsonl"
    for run, sign in ((5, "a"), (5, "a"), (6, "b"), (5, "c")):
        records = {"arrays": {"bytes": 7, "sha256": sign * 64, "arrays": []}}
        write_receipt(path, {"client": 1, "run": run, "round": 3, "purpose": "update"}, records, signer)
        cautions = verify_receipts(path, signer.key).cautions
        assert cautions == () or sign == "c"
    assert cautions == ("1 answers are other ones than before in the same round of a run: the server asked anew",)


def test_a_node_has_one_key_that_nobody_else_can_read(tmp_path):
    first = receipt_key(tmp_path)
    assert receipt_key(tmp_path).key == first.key == (tmp_path / "receipts.pub").read_text().strip()
    assert stat.S_IMODE((tmp_path / "receipts.key").stat().st_mode) == 0o600
    assert sorted(file.name for file in tmp_path.iterdir()) == ["receipts.key", "receipts.pub"]
    (tmp_path / "receipts.key").write_text("damaged")
    with pytest.raises(DataError, match="no key"):
        receipt_key(tmp_path)


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("kind", ["scaffold", "fedmd", "sums"])
def test_a_party_s_lines_are_of_the_sizes_that_the_server_heard(tmp_path, kind):
    sums = {"rounds": 2, "participation": 1.0, "claims": "taken", "moves": "taken", "secure_sums": {}}
    config = flower_config("fedavg", federation=sums) if kind == "sums" else flower_config(kind)
    result = run_on(grid_for(config, tmp_path), config, tmp_path / "run")
    files = sorted((tmp_path / "nodes" / "receipts").rglob("client-*.jsonl"))
    heard = sum(len(record.clients) for record in result.history)
    assert sum(check_heard(file, tmp_path / "run") for file in files) == heard
    lines = files[0].read_bytes().splitlines()
    put(files[0], lines[: max(n for n, line in enumerate(lines) if json.loads(line)["purpose"] == "update")])
    with pytest.raises(DataError, match="lines were cut off"):
        check_heard(files[0], tmp_path / "run")


@pytest.mark.usefixtures("without_pictures")
def test_a_party_that_refused_is_not_said_to_have_cut_off_lines(tmp_path):
    links = [{"kind": "clip", "norm": 0.5}, {"kind": "noise", "multiplier": 1.0}]
    method = tiny_method("fedavg", merge={"kind": "mean", "weighting": "uniform"}, upload=links)
    config = flower_config(method, privacy={"unit": "client"}, federation={"rounds": 2, "participation": 1.0})
    with pytest.raises(QuorumError):
        run_on(grid_for(config, tmp_path, budget=5.0), config, tmp_path / "run")  # 4.73 after one answer
    for file in (tmp_path / "nodes" / "receipts").rglob("client-*.jsonl"):
        assert check_heard(file, tmp_path / "run") == 1


@pytest.mark.usefixtures("without_pictures")
def test_the_same_experiment_once_more_has_receipts_of_its_own(tmp_path):
    """Rounds and sizes are the same; a party's file has both, and either's lines may have been cut off."""
    config = flower_config("fedavg", federation={"rounds": 2, "participation": 1.0})
    for number in (1, 2):
        grid = grid_for(config, tmp_path)
        for node in grid.nodes.values():
            node.context.run_id = number
        run_on(grid, config, tmp_path / f"run-{number}", run=number)
    [event] = events_of(tmp_path / "run-2", "parties_asked")
    assert (event["round"], event["run"]) == (1, 2)
    for file in (tmp_path / "nodes" / "receipts").rglob("client-*.jsonl"):
        assert check_heard(file, tmp_path / "run-1") == check_heard(file, tmp_path / "run-2") == 2
        put(file, file.read_bytes().splitlines()[:-1])
        assert check_heard(file, tmp_path / "run-1") == 2
        with pytest.raises(DataError, match="in round 2: lines were cut off"):
            check_heard(file, tmp_path / "run-2")
