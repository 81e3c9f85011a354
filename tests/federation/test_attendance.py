"""Who is missing in a round, and the one word that fits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fedfuse.core.plain_json import dumps
from fedfuse.federation.attendance import Attendance
from fedfuse.federation.engine import Missed, QuorumError
from fedfuse.federation.events import EventLog
from fedfuse.federation.prototypes import Prototypes
from fedfuse.federation.state import History, RoundRecord
from fedfuse.federation.summary import summarise
from fedfuse.parts.screen import Screen, Screened
from tests.helpers import BentEngine, Recorder, make_federation, make_recipe, played

OLDER = {
    "round": 1, "clients": [0, 1, 2, 3], "refused": [1], "screened": [], "bytes_up": 3, "bytes_down": 4,
    "training_loss": None, "ensemble_accuracy": None, "prototypes": {"mlp": {"accuracy": 0.5}}, "seconds": 0.1,
    "client_accuracy": {},
}  # fmt: skip
"""As earlier versions wrote it."""
CLOCK = {
    "total": 9.0,
    "seconds": 9.0,
    "waited": 0.0,
    "clients": 8.0,
    "server": 1.0,
    "absent": 5,
    "late": [3],
    "left": [0],
}


class TestRecords:
    def test_those_of_older_runs_are_read(self):
        record = RoundRecord.from_event({"event": "round_finished", "time": 1.0, **OLDER})
        assert (record.absent, record.late, record.joined) == ((), (), {})
        assert record.heard == {0, 2, 3}
        assert not record.prototypes["mlp"].untaught

    def test_those_of_older_runs_with_a_clock_say_who_was_late(self):
        record = RoundRecord.from_json({**OLDER, "clock": CLOCK})
        assert record.late == (0, 3)
        assert record.heard == {2}

    @pytest.mark.parametrize(
        "more", [{}, {"absent": [0]}, {"late": [0], "joined": {"2": "wide"}}, {"clock": CLOCK, "late": [0, 3]}]
    )
    def test_what_is_written_is_read(self, more):
        record = RoundRecord.from_json({**OLDER, **more})
        assert RoundRecord.from_json(json.loads(dumps(record.to_json()))) == record
        assert json.loads(dumps(record.to_json())).items() >= more.items()

    def test_a_history_knows_who_joined(self):
        records = [
            RoundRecord.from_json({**OLDER, "joined": joined}) for joined in ({"2": "a"}, {}, {"3": "b", "2": "c"})
        ]
        history = History(records[:1])
        longer = history.plus(records[1]).plus(records[2])
        assert history.joined == {2: "a"}
        assert longer.joined == History(records).joined == {2: "c", 3: "b"}


def test_prototypes_with_some_that_are_others():
    plan = Prototypes([("a", 3), ("b", 2)])
    changed = plan.but({1: "b", 4: "c"})
    assert list(changed) == ["a", "b", "a", "b", "c"]
    assert changed.clients_of == {"a": 2, "b": 2, "c": 1}
    assert plan.but({}) is plan


class TestAttendance:
    def test_everybody_has_one_word(self):
        heard = Recorder()
        roll = Attendance(4, EventLog(listeners=(heard,)))
        roll.refuse(1, "NaN", 10)
        roll.refuse(1, "again")
        roll.refuse(77, "a stranger")
        roll.refuse(0, "came twice, and once was good")
        roll.refuse(2, "NaN")
        roll.late(2, "needed 9 s")
        missed = {3: Missed("absent", "gone"), 4: Missed("refused", "no records"), 0: Missed("late", "is here")}
        roll.close(range(6), {0}, missed)
        assert [roll.who(word) for word in ("absent", "late", "refused")] == [(3,), (2, 5), (1, 4)]
        assert roll.in_words() == "1 absent, 2 late, 2 refused"
        assert [(e["client"], e["reason"]) for e in heard.of("client_late")] == [
            (2, "needed 9 s"),
            (5, "no answer came"),
        ]
        assert [(e["client"], e["round"]) for e in heard.of("client_absent")] == [(3, 4)]
        assert heard.of("update_refused")[-1]["client"] == 4


class Strict(BentEngine):
    quorum = 0.5


@pytest.mark.parametrize(("silent", "stops"), [((0,), False), ((0, 1), False), ((0, 1, 2), True)])
def test_an_engine_may_ask_for_a_quorum_of_sound_updates(silent, stops):
    federation = make_federation(bend=lambda pairs: [pair for pair in pairs if pair[0].client not in silent])
    federation = replace(federation, engine=Strict(federation.engine.inner, federation.engine.bend))
    if not stops:
        assert played(federation, 1).server.history[0].late == silent
        return
    with pytest.raises(QuorumError, match=r"round 1: 1 of 4 updates count \(3 late\), engine.quorum asks for 50%"):
        played(federation, 1)


class First(Screen):
    def screen(self, view, updates):  # noqa: ARG002
        return Screened(updates.counted[:1], updates.teachers[:1], {u.client: "not first" for u in updates.counted[1:]})


def test_a_summary_counts_each_word():
    silent = make_federation(
        recipe=make_recipe(screen=(First(),)), bend=lambda pairs: [p for p in pairs if p[0].client != 3]
    )
    summary = summarise(played(silent, 2).server, {}, None)
    names = ("updates_counted", "updates_refused", "clients_absent", "clients_late", "clients_screened")
    assert [summary[name] for name in names] == [2, 0, 0, 2, 4]
    assert summary["rounds_in_vain"] == 0
    assert summary["untaught"] == []
    assert "joined" not in summary


def test_a_summary_says_what_was_never_taught():
    summary = summarise(played(make_federation(bend=lambda _: []), 2).server, {}, None)
    assert (summary["untaught"], summary["rounds_in_vain"], summary["updates_counted"]) == (["mlp"], 2, 0)
