"""A run folder that was damaged, emptied or added to leads to the same final bytes, or to one sentence and no loss."""

from __future__ import annotations

import errno
import os
import random
import re
import shutil
from pathlib import Path

import pytest

from fedfuse.core.errors import ConfigError, FedfuseError, RunFolderError
from fedfuse.core.tensor_files import read_safetensors, write_safetensors
from fedfuse.experiment.api import run_all
from fedfuse.experiment.comparison import Cell, complete, rehearse
from fedfuse.experiment.run import Experiment
from fedfuse.federation.folder import RunFolder
from tests.experiment.test_resume import StopAt, assert_same
from tests.helpers import Recorder, events_of, files_of, tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")

ROUNDS = 5
METHODS = ("fedavg", "scaffold")
OLDER, NEWEST = "checkpoints/round-000002.safetensors", "checkpoints/round-000003.safetensors"
STATES = "checkpoints/clients/round-000003.states"


def experiment(method="fedavg", **sections):
    return Experiment(tiny_config(method, federation={"rounds": ROUNDS, "participation": 0.75}, **sections))


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """For each method a run in one go, and one that was stopped in round 4."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fedfuse.experiment.run.draw_run", lambda *_, **__: None)
        for method in METHODS:
            folder = tmp_path_factory.mktemp(method)
            found[method] = experiment(method).run(folder / "straight"), folder / "stopped"
            with pytest.raises(KeyboardInterrupt):
                experiment(method).run(folder / "stopped", listeners=(StopAt("round_started", 4),))
    return found


@pytest.fixture
def stopped(begun, tmp_path):
    return lambda method: Path(shutil.copytree(begun[method][1], tmp_path / "run", symlinks=True))


@pytest.fixture
def finished(begun, tmp_path):
    return lambda method: Path(shutil.copytree(begun[method][0].folder.path, tmp_path / "run", symlinks=True))


def contents(folder):
    """Everything that lies in a folder, but for its lock."""
    return {
        str(path.relative_to(folder)): path.readlink() if path.is_symlink() else path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.name != ".lock" and (path.is_symlink() or path.is_file())
    }


def resumed(folder, method="fedavg", **options):
    heard = Recorder()
    result = experiment(method).run(folder, **{"resume": True, **options}, listeners=(heard,))
    return result, heard


def changed(name, change):
    """The damage of replacing a file's bytes."""

    def damage(folder):
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return damage


def written(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def flipped(place, bit=64):
    def change(content):
        mutable = bytearray(content)
        mutable[place] ^= bit
        return bytes(mutable)

    return change


def removed(*names):
    def damage(folder):
        for name in names:
            path = folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return damage


def both(one, other):
    def damage(folder):
        one(folder)
        other(folder)

    return damage


def copied(source, target):
    return lambda folder: shutil.copy(folder / source, folder / target)


def said(name, **about):
    """Another header, with a digest that fits: what a bug or a person would write, and not a disk."""

    def damage(folder):
        tensors, before = read_safetensors(folder / name)
        write_safetensors(folder / name, tensors, {key: v for key, v in {**before, **about}.items() if v is not None})

    return damage


def in_line(number, text):
    def change(content):
        lines = content.splitlines(keepends=True)
        lines[number - 1] = text
        return b"".join(lines)

    return change


def as_folder(name):
    return both(removed(name), lambda folder: (folder / name).mkdir())


def as_link(name, target):
    return both(removed(name), lambda folder: (folder / name).symlink_to(target))


def noise(count):
    return random.Random(0).randbytes(count)


PASSED_OVER = {
    "truncated": changed(NEWEST, lambda b: b[:-7]),
    "half": changed(NEWEST, lambda b: b[: len(b) // 2]),
    "of no length": written(NEWEST, b""),
    "a bit of a weight": changed(NEWEST, flipped(-41)),
    "a bit of the header": changed(NEWEST, flipped(9)),
    "a bit of the length": changed(NEWEST, flipped(2)),
    "a bit of the digest": changed(NEWEST, flipped(40, 1)),
    "another digit in a layout": changed(NEWEST, lambda b: b.replace(b"[6, 2]", b"[6, 3]", 1)),
    "another key": changed(NEWEST, lambda b: b.replace(b'\\"layouts', b'\\"lay0uts', 1)),
    "another round": changed(NEWEST, lambda b: b.replace(b'\\"round\\": 3', b'\\"round\\": 4', 1)),
    "another format": changed(NEWEST, lambda b: b.replace(b'\\"format\\": 4', b'\\"format\\": 3', 1)),
    "no digest": changed(NEWEST, lambda b: b.replace(b'"sha256":', b'"sha257":', 1)),
    "garbage": changed(NEWEST, lambda b: noise(len(b))),
    "zeros": changed(NEWEST, lambda b: bytes(len(b))),
    "a tail of zeros": changed(NEWEST, lambda b: b[:-60] + bytes(60)),
    "more at its end": changed(NEWEST, lambda b: b + b"more"),
    "no layouts, well written": said(NEWEST, layouts=None),
    "a round of its own, well written": said(NEWEST, round=2),
    "a log that is none, well written": said(NEWEST, log=7),
    "a copy of the older one": copied(OLDER, NEWEST),
    "the log lost its end": lambda folder: os.truncate(folder / "events.jsonl", _mark(folder, NEWEST) - 1),
}
"""The newest checkpoint is no good: the run goes on from the one before, says so, and sets the newest aside."""


def _mark(folder, name):
    return read_safetensors(folder / name)[1]["log"]["bytes"]


@pytest.mark.parametrize("name", list(PASSED_OVER))
def test_a_newest_checkpoint_that_is_no_good_is_passed_over_and_kept(stopped, begun, name):
    folder = stopped("fedavg")
    PASSED_OVER[name](folder)
    before = contents(folder)[NEWEST]
    result, heard = resumed(folder)
    assert_same(result, begun["fedavg"][0])
    assert (folder / f"{NEWEST}.damaged").read_bytes() == before
    (skipped,) = heard.of("checkpoint_skipped")
    assert skipped["file"] == "round-000003.safetensors"
    assert [event["file"] for event in events_of(folder, "checkpoint_skipped")] == [skipped["file"]]


STATE_DAMAGE = {
    "truncated": changed(STATES, lambda b: b[: len(b) // 3]),
    "of no length": written(STATES, b""),
    "a bit of the first state": changed(STATES, lambda b: flipped(8 + int.from_bytes(b[:8], "little") + 5)(b)),
    "a bit of a header": changed(STATES, flipped(90)),
    "a tail of zeros": changed(STATES, lambda b: b[: len(b) // 3] + bytes(len(b) * 2 // 3)),
    "removed": removed(STATES),
}


@pytest.mark.parametrize("name", list(STATE_DAMAGE))
def test_states_that_are_no_good_lead_to_the_checkpoint_before(stopped, begun, name):
    folder = stopped("scaffold")
    STATE_DAMAGE[name](folder)
    result, heard = resumed(folder, "scaffold")
    assert_same(result, begun["scaffold"][0])
    assert "clients is not as the run left it" in heard.of("checkpoint_skipped")[0]["reason"]


def test_a_state_that_was_only_moved_is_found_where_it_was(stopped, begun):
    """The last piece of the segment is that of the client whom round 3 did not hear."""
    folder = stopped("scaffold")
    changed(STATES, lambda b: b[:-7])(folder)
    result, heard = resumed(folder, "scaffold")
    assert_same(result, begun["scaffold"][0])
    assert not heard.of("checkpoint_skipped")


UNHARMED = {
    "untouched": both(lambda _: None, lambda _: None),
    "a file of somebody else": lambda folder: (folder / "checkpoints/round-abc.safetensors").write_bytes(b"mine"),
    "copies that were put aside": both(
        copied(NEWEST, "checkpoints/round-best.safetensors"), copied(OLDER, "checkpoints/round-zzz.safetensors")
    ),
    "a number that is none of ours": copied(OLDER, "checkpoints/round-9.safetensors"),
    "notes": lambda folder: (folder / "notes.txt").write_text("mine"),
    "half a last line": lambda folder: _append(folder, b'{"event": "round_fin'),
    "garbage after the last line": lambda folder: _append(folder, noise(300)),
    "garbage lines": lambda folder: _append(folder, b"\xff\xfe\nnull\n5\n{}\n" + b"[" * 9999),
    "zeros after the last line": lambda folder: _append(folder, bytes(500)),
    "no partition": removed("partition.json", "partition.safetensors"),
    "a partition of garbage": changed("partition.json", lambda b: noise(len(b))),
    "a bit of the partition": changed("partition.safetensors", flipped(-3)),
    "a half-written file": lambda folder: (folder / "checkpoints/.round-000004.safetensors.77.tmp").write_bytes(b"x"),
}


def _append(folder, content):
    with (folder / "events.jsonl").open("ab") as log:
        log.write(content)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", list(UNHARMED))
def test_what_does_no_harm(stopped, begun, name, method):
    folder = stopped(method)
    UNHARMED[name](folder)
    foreign = {path: content for path, content in contents(folder).items() if _is_foreign(path)}
    result, heard = resumed(folder, method)
    assert_same(result, begun[method][0])
    assert not heard.of("checkpoint_skipped")
    assert {path: content for path, content in contents(folder).items() if _is_foreign(path)} == foreign
    assert [path for path in contents(folder) if re.search(r"round-0{5}\d\.safetensors$", path)] == [
        "checkpoints/round-000004.safetensors",
        "checkpoints/round-000005.safetensors",
    ]


def _is_foreign(path):
    return bool(re.search(r"round-(abc|best|zzz|9)\.|notes", path))


REFUSED = {
    "both truncated": (
        both(changed(NEWEST, lambda b: b[:-7]), changed(OLDER, lambda b: b[:-7])),
        r"no checkpoint that the run can go on from: round-000003\.safetensors \(the file ends too early\), "
        r"round-000002\.safetensors \(the file ends too early\); bring back .*overwrite=True",
    ),
    "both of no length": (
        both(written(NEWEST, b""), written(OLDER, b"")),
        "no checkpoint that the run can go on from",
    ),
    "checkpoints removed": (removed("checkpoints"), "holds a run, but its checkpoints are gone .*bring them back"),
    "checkpoints moved away, and an empty folder": (
        both(removed("checkpoints"), lambda folder: (folder / "checkpoints").mkdir()),
        "its checkpoints are gone",
    ),
    "the newest is a folder": (as_folder(NEWEST), "Is a directory"),
    "the newest is a link to itself": (as_link(NEWEST, "round-000003.safetensors"), "symbolic links"),
    "checkpoints is a file": (
        both(removed("checkpoints"), lambda folder: (folder / "checkpoints").write_text("x")),
        "Not a directory",
    ),
    "a later version's": (said(NEWEST, format=99), "was written by a later version of fedfuse"),
    "an earlier version's": (said(NEWEST, format=3), "was written by an earlier version of fedfuse"),
    "another experiment's": (
        said(NEWEST, config_sha256="0" * 64, course_sha256="0" * 64),
        "belongs to another experiment",
    ),
    "the log: not UTF-8 in line 3": (changed("events.jsonl", in_line(3, b"\xff\n")), "events.jsonl is not as the run"),
    "the log: other text in line 3": (changed("events.jsonl", in_line(3, b"text\n")), "events.jsonl is not as the run"),
    "the log: a bit": (changed("events.jsonl", flipped(700, 1)), "events.jsonl is not as the run"),
    "the log: a 5 in line 3": (changed("events.jsonl", in_line(3, b"5\n")), "events.jsonl is not as the run"),
    "the log: {} in line 1": (changed("events.jsonl", in_line(1, b"{}\n")), r"events\.jsonl, line 1 is damaged"),
    "the log: not UTF-8 in line 1": (changed("events.jsonl", in_line(1, b"\xff\n")), "line 1 is damaged"),
    "the log: deep nesting in line 1": (changed("events.jsonl", in_line(1, b"[" * 9999 + b"\n")), "line 1 is damaged"),
    "the log: of no length": (written("events.jsonl", b""), "events.jsonl is not as the run left it: gone"),
    "the log: cut to 200 bytes": (changed("events.jsonl", lambda b: b[:200]), "events.jsonl is not as the run left it"),
    "the log: removed": (removed("events.jsonl"), "events.jsonl is not as the run left it: gone"),
    "the log: a folder": (as_folder("events.jsonl"), "Is a directory"),
    "a summary of garbage": (lambda folder: (folder / "summary.json").write_text("{x"), "summary.json is damaged"),
    "no config": (removed("config.yaml"), r"holds other files \('checkpoints'\) and no run"),
    "a config of garbage": (written("config.yaml", noise(300)), "cannot read .*UTF-8"),
    "an empty config": (written("config.yaml", b""), "should be a mapping"),
    "half a config": (changed("config.yaml", lambda b: b[: len(b) // 2]), "holds a"),
    "a config of other epochs": (
        changed("config.yaml", lambda b: b.replace(b"epochs: 1", b"epochs: 9")),
        "epochs is 9",
    ),
}
"""Nothing can be done but to say it, and everything stays where it is."""


@pytest.mark.parametrize("name", list(REFUSED))
def test_what_cannot_be_gone_on_with_is_said_and_kept(stopped, name):
    damage, words = REFUSED[name]
    folder = stopped("fedavg")
    damage(folder)
    before = contents(folder)
    with pytest.raises((FedfuseError, OSError), match=words) as caught:
        resumed(folder)
    assert "\n" not in str(caught.value)
    assert contents(folder) == before


@pytest.mark.parametrize("name", [name for name in REFUSED if name not in ("no config", "the newest is a folder")])
def test_whoever_overwrites_gets_a_whole_run(stopped, begun, name):
    folder = stopped("fedavg")
    REFUSED[name][0](folder)
    if name in ("checkpoints is a file", "the log: a folder"):
        with pytest.raises(OSError, match="directory"):
            resumed(folder, resume=False, overwrite=True)
    else:
        assert_same(resumed(folder, resume=False, overwrite=True)[0], begun["fedavg"][0])


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO, errno.ESTALE, errno.EMFILE])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_disk_that_does_not_answer_is_no_damaged_file(stopped, begun, monkeypatch, number, what):
    """Whoever gets an error instead of a file knows nothing of what is in it."""
    folder = stopped("fedavg")
    before = contents(folder)
    asked = "open" if what == "file" else "iterdir"
    answer = getattr(Path, asked)

    def refused(path, *arguments, **options):
        if path.name == ("round-000003.safetensors" if what == "file" else "checkpoints"):
            raise OSError(number, os.strerror(number), str(path))
        return answer(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, asked, refused)
        with pytest.raises(OSError, match=os.strerror(number)):
            resumed(folder)
    assert contents(folder) == before
    assert_same(resumed(folder)[0], begun["fedavg"][0])


DAMAGE = {
    "no models": (removed("final"), r"mlp\.safetensors is gone; bring it back"),
    "no model": (removed("final/mlp.safetensors"), r"mlp\.safetensors is gone; bring it back"),
    "a bit of a model": (changed("final/mlp.safetensors", flipped(-9)), r"mlp\.safetensors is damaged: its bytes"),
    "half a model": (changed("final/mlp.safetensors", lambda b: b[:-9]), r"mlp\.safetensors is damaged: the file"),
    "a summary of garbage": (written("summary.json", b"{x"), r"summary\.json is damaged; bring it back"),
    "a summary of 5": (written("summary.json", b"5"), r"summary\.json is damaged"),
    "an empty summary": (written("summary.json", b""), r"summary\.json is damaged"),
    "a deep summary": (written("summary.json", b"[" * 99999), r"summary\.json is damaged"),
    "a summary of other bytes": (changed("summary.json", lambda b: noise(len(b))), "summary"),
    "no log": (removed("events.jsonl"), r"events\.jsonl is not as the run left it"),
    "half a log": (changed("events.jsonl", lambda b: b[: len(b) // 2]), r"events\.jsonl is not as the run left it"),
    "a bit of the log": (changed("events.jsonl", flipped(2000, 1)), r"events\.jsonl is not as the run left it"),
    "a log of garbage": (changed("events.jsonl", lambda b: noise(len(b))), r"events\.jsonl"),
}


class TestFinished:
    def test_it_says_so_and_changes_nothing(self, finished):
        folder = finished("fedavg")
        before = contents(folder)
        result, heard = resumed(folder)
        assert [event["event"] for event in heard.entries] == ["run_found"]
        assert result.summary["rounds"] == len(result.history) == ROUNDS
        assert contents(folder) == before

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("what", ["removed", "truncated", "of an earlier format"])
    def test_it_needs_no_checkpoints(self, finished, begun, method, what):
        folder = finished(method)
        if what == "removed":
            shutil.rmtree(folder / "checkpoints")
        for path in folder.glob("checkpoints/*.safetensors"):
            path.write_bytes(path.read_bytes()[:99]) if what == "truncated" else said(path, format=2)(folder)
        before = contents(folder)
        result, _ = resumed(folder, method)
        assert_same(result, begun[method][0])
        assert contents(folder) == before

    @pytest.mark.parametrize("seed", [0, 7])
    @pytest.mark.parametrize("gone", ["checkpoints", "checkpoints and summary", "everything but models", "none"])
    def test_it_is_not_replaced_unasked(self, finished, seed, gone):
        folder = finished("fedavg")
        removed(
            *{
                "none": (),
                "checkpoints": ("checkpoints",),
                "checkpoints and summary": ("checkpoints", "summary.json"),
                "everything but models": ("checkpoints", "summary.json", "events.jsonl", "partition.json"),
            }[gone]
        )(folder)
        before = contents(folder)
        with pytest.raises(RunFolderError, match=r"already holds a run; add resume=True .* overwrite=True"):
            experiment(seed=seed).run(folder, resume=False)
        if gone not in ("checkpoints", "none"):
            with pytest.raises(RunFolderError, match=r"holds another experiment|its checkpoints are gone"):
                experiment(seed=seed).run(folder, resume=True)
        assert contents(folder) == before

    @pytest.mark.parametrize("name", list(DAMAGE))
    def test_what_is_missing_is_named_and_the_rest_kept(self, finished, name):
        damage, words = DAMAGE[name]
        folder = finished("fedavg")
        damage(folder)
        before = contents(folder)
        with pytest.raises(RunFolderError, match=words):
            resumed(folder)
        assert contents(folder) == before

    def test_clients_models_are_counted(self, tmp_path):
        folder = experiment("local-only").run(tmp_path / "run").folder
        (tmp_path / "run/final/clients/1.safetensors").unlink()
        with pytest.raises(RunFolderError, match=r"1 of its 4 models are gone from .*final"):
            experiment("local-only").run(folder.path, resume=True)

    def test_a_summary_that_was_removed_is_written_again(self, finished, begun):
        folder = finished("scaffold")
        (folder / "summary.json").unlink()
        assert_same(resumed(folder, "scaffold")[0], begun["scaffold"][0])


def test_a_third_checkpoint_that_a_kill_left_goes(stopped, begun):
    """Between the last rename and the removal of the oldest; and there is no later round that would remove it."""
    folder = stopped("scaffold")
    resumed(folder, "scaffold")
    (folder / "summary.json").unlink()
    copied("checkpoints/round-000004.safetensors", OLDER)(folder)
    said(OLDER, round=2)(folder)
    assert_same(resumed(folder, "scaffold")[0], begun["scaffold"][0])
    assert len(list(folder.glob("checkpoints/*.safetensors"))) == 2


def test_a_run_that_never_came_to_a_checkpoint_begins_again(begun, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        experiment("scaffold").run(tmp_path / "run", listeners=(StopAt("round_finished", 1),))
    shutil.rmtree(tmp_path / "run" / "checkpoints")  # as if it had been killed right before it was written
    assert_same(resumed(tmp_path / "run", "scaffold")[0], begun["scaffold"][0])


def test_another_version_is_said(stopped, begun):
    folder = stopped("fedavg")
    lines = (folder / "events.jsonl").read_bytes().splitlines(keepends=True)
    assert b'"torch": ' in lines[0]
    with pytest.MonkeyPatch.context() as patch:
        from fedfuse.core.origin import Origin

        patch.setattr("fedfuse.experiment.earlier.origin", lambda: Origin("9.9", None, "9.8", "3", "m"))
        result, heard = resumed(folder)
    assert {event["what"]: event["now"] for event in heard.of("version_changed")} == {"fedfuse": "9.9", "torch": "9.8"}
    assert_same(result, begun["fedavg"][0])


def test_overwriting_never_follows_a_link_out(finished, begun, tmp_path):
    folder, elsewhere = finished("fedavg"), tmp_path / "elsewhere"
    shutil.copytree(folder / "checkpoints", elsewhere)
    (elsewhere / "clients").mkdir()
    (elsewhere / "clients" / "round-000001.states").write_bytes(b"mine")
    before = contents(elsewhere)
    shutil.rmtree(folder / "checkpoints")
    (folder / "checkpoints").symlink_to(elsewhere)
    result = experiment().run(folder, overwrite=True)
    assert_same(result, begun["fedavg"][0])
    assert contents(elsewhere) == before


def test_other_data_is_refused_however_the_log_was_cut(stopped):
    folder = stopped("fedavg")
    changed("events.jsonl", lambda b: b[:200])(folder)
    with pytest.raises(RunFolderError, match="not as the run left it"):
        resumed(folder)


def test_another_experiment_does_not_replace_a_folder_whose_config_it_cannot_read(stopped):
    folder = stopped("fedavg")
    written("config.yaml", b"\xff")(folder)
    with pytest.raises((RunFolderError, ConfigError)):
        experiment(seed=3).run(folder, resume=True)
    assert files_of(folder)


LOSSES = {
    "both checkpoints": both(written(NEWEST, b""), written(OLDER, b"")),
    "all checkpoints": removed("checkpoints"),
    "the first line of the log": changed("events.jsonl", in_line(1, b"5\n")),
    "the config": written("config.yaml", b"\xff"),
}


@pytest.mark.parametrize("name", list(LOSSES))
def test_a_comparison_which_always_resumes_says_it_too_and_overwrites_if_asked(begun, tmp_path, name):
    given = {tmp_path / "fedavg-seed0": experiment()}
    (folder,) = given
    shutil.copytree(begun["fedavg"][1], folder)
    LOSSES[name](folder)
    before = contents(folder)
    with pytest.raises((RunFolderError, ConfigError)):
        run_all(given)
    cells = [Cell(experiment(), RunFolder(folder))]
    with pytest.raises((RunFolderError, ConfigError)):
        complete(rehearse(cells, overwrite=False))
    assert contents(folder) == before
    complete(rehearse(cells, overwrite=True))
    assert files_of(folder / "final") == files_of(begun["fedavg"][0].folder.final)
