"""The pages about a node: what they say, and that no text from elsewhere becomes more than text."""

from __future__ import annotations

import json

import pytest

from fedfuse.flower.receipts import describe_values, write_receipt
from fedfuse.flower.status import RECEIPTS, STATUS, count, file_of, note, statuses
from fedfuse.flower.status_page import pages

NASTY = '<script>alert(1)</script>"\\\n'


@pytest.fixture
def state(tmp_path):
    status = file_of(tmp_path, STATUS, "trial", 1)
    facts = {"experiment": "trial", "method": "feddf", "rounds": 9, "client": 1, "round": 4, "examples": 1200}
    note(status, {**facts, "doing": "training", "prototype": "cnn", "trouble": None})
    receipts = file_of(tmp_path, RECEIPTS, "trial", 1)
    for _ in range(2):
        write_receipt(receipts, {"round": 4, "purpose": "update"}, {"metrics": describe_values({"loss": 0.5})})
    return tmp_path


def test_a_page_for_people(state):
    page = pages(state)["/"]().text
    for said in ("trial, client 1", "feddf", "cnn", "4 of 9", "1,200", "training", "26 bytes", "How to leave"):
        assert said in page
    assert "http" not in page.replace("http-equiv", "")
    assert "class=bad" not in page


def test_metrics(state):
    count(file_of(state, STATUS, "trial", 1), "refusals", "refused", "weights are not finite")
    lines = pages(state)["/metrics"]().text.splitlines()
    samples = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    labels = '{experiment="trial",client="1"}'
    assert samples[f"fedfuse_node_round{labels}"] == "4"
    assert samples[f"fedfuse_node_refusals_total{labels}"] == "1"
    assert samples[f"fedfuse_node_troubles_total{labels}"] == "0"
    assert samples['fedfuse_node_sent_bytes_total{experiment="trial",client="1",record="metrics"}'] == "26"
    assert float(samples[f"fedfuse_node_last_seconds{labels}"]) > 1.7e9


def test_status_as_json(state):
    [client] = json.loads(pages(state)["/status.json"]().text)
    assert client == statuses(state)[0]
    assert client["sent"] == {"metrics": 26}


def test_health_is_trouble_until_it_is_over(state):
    status = file_of(state, STATUS, "trial", 1)
    assert pages(state)["/health"]().status == 200
    count(status, "troubles", "trouble", "/srv/gone.csv does not exist")
    page = pages(state)["/health"]()
    assert (page.status, "gone" in page.text) == (503, False)
    assert "/srv/gone.csv does not exist" in pages(state)["/"]().text
    note(status, {"trouble": None})
    assert pages(state)["/health"]().status == 200


def test_texts_from_elsewhere_stay_texts(state):
    note(
        file_of(state, STATUS, "nasty", 2),
        {"experiment": NASTY, "client": NASTY, "method": NASTY, "refusals": 1, "refused": NASTY},
    )
    assert "<script>" not in pages(state)["/"]().text
    for line in pages(state)["/metrics"]().text.splitlines():
        assert line.startswith(("#", "fedfuse_node_"))
        assert "script>" not in line or r"\"\\\n" in line


def test_damaged_files_do_not_keep_the_rest_from_view(state):
    file_of(state, STATUS, "other", 1).parent.mkdir()
    file_of(state, STATUS, "other", 1).write_text("{")
    file_of(state, RECEIPTS, "trial", 1).write_text("[]\n")
    for make in pages(state).values():
        assert make().status == 200


def test_a_count_that_somebody_spoilt(state):
    status = file_of(state, STATUS, "trial", 1)
    note(status, {"refusals": "many"})
    count(status, "refusals", "refused", "weights are not finite")
    assert statuses(state)[0]["refusals"] == 1


def test_no_node_yet(tmp_path):
    assert "not" not in pages(tmp_path)["/health"]().text
    assert "No node of this folder" in pages(tmp_path)["/"]().text


def test_many_clients_are_not_all_shown(tmp_path):
    for client in range(120):
        note(file_of(tmp_path, STATUS, "simulation", client), {"client": client})
    assert len(statuses(tmp_path)) == 100
