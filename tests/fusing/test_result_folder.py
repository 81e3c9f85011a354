"""Where a result goes: whole or not at all, in the place of an older one, and over nobody's own files."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from fedfuse.core.errors import RunFolderError
from fedfuse.fusing.result_folder import FACTS, WORK, own_folder
from tests.reliability.crashes.mortal_files import MortalFiles

OLDER = {"config.json": "{}", "model.safetensors": "old", "tokenizer.json": "{}", "README.md": "old"}
NEWER = {"model.safetensors": "new", "README.md": "new", "weights.safetensors": "more"}


class Killed(BaseException):
    """The process is dead."""


def publish(path: Path, files: dict[str, str], overwrite: bool = False, kept: str | None = None) -> None:
    """A fusion that makes these files; what takes long is found again by whoever goes on."""
    with own_folder(path, overwrite, []) as folder:
        if kept is not None:
            (folder.work / "answers").write_text(kept)
        made = folder.staging()
        for name, content in files.items():
            (made / name).write_text(content)
        folder.publish(made, {"models": []})


def contents(path: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in path.iterdir() if file.name != FACTS}


class TestPublish:
    def test_an_older_result_goes_with_all_of_its_files(self, tmp_path):
        publish(tmp_path / "out", OLDER)
        publish(tmp_path / "out", NEWER, overwrite=True)
        assert contents(tmp_path / "out") == NEWER
        assert json.loads((tmp_path / "out" / FACTS).read_text())["files"].keys() == NEWER.keys()

    def test_files_of_others_stay(self, tmp_path):
        publish(tmp_path / "out", OLDER)
        (tmp_path / "out" / "thesis.txt").write_text("years of work")
        (tmp_path / "out" / "pictures").mkdir()
        publish(tmp_path / "out", NEWER, overwrite=True)
        assert (tmp_path / "out" / "thesis.txt").read_text() == "years of work"
        assert (tmp_path / "out" / "pictures").is_dir()

    def test_the_hashes_are_those_of_the_files(self, tmp_path):
        import hashlib

        publish(tmp_path / "out", NEWER)
        files = json.loads((tmp_path / "out" / FACTS).read_text())["files"]
        assert files == {name: hashlib.sha256(content.encode()).hexdigest() for name, content in NEWER.items()}

    @pytest.mark.parametrize("how", ["before", "after"])
    def test_killed_at_any_operation_it_goes_on(self, how, tmp_path):
        publish(tmp_path / "straight", OLDER)
        with pytest.MonkeyPatch.context() as patch:
            files = MortalFiles(tmp_path / "straight", put=patch.setattr)
            publish(tmp_path / "straight", NEWER, overwrite=True)
        ends = [self.dies(tmp_path / str(at), at, how) for at in range(1, files.count + 1)]
        assert sum(ends) > 20

    def dies(self, out: Path, at: int, how: str) -> bool:
        """Whether it died there, after which it has gone on; it does not after removing what is not there."""
        publish(out, OLDER)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "kill", _die)
            MortalFiles(out, at, how, put=patch.setattr)
            try:
                publish(out, NEWER, overwrite=True)
                died = False
            except Killed:
                died = True
        publish(out, NEWER, overwrite=True)
        assert contents(out) == NEWER, at
        return died

    def test_killed_while_it_moves_it_needs_no_leave_to_go_on(self, tmp_path):
        """Files that the same command has begun to put there are its own."""
        out = tmp_path / "out"
        with pytest.MonkeyPatch.context() as patch:
            moved = []

            def replace(source, target, moved=moved, real=os.replace):
                if Path(target).parent == out and Path(source).parent.name == "result":
                    if moved:
                        raise Killed
                    moved.append(target)
                real(source, target)

            patch.setattr(os, "replace", replace)
            with pytest.raises(Killed):
                publish(out, NEWER)
        assert len(contents_of_files(out)) == 1
        publish(out, NEWER)
        assert contents(out) == NEWER


def contents_of_files(path: Path) -> list[str]:
    return [file.name for file in path.iterdir() if file.is_file()]


def _die(*_arguments: object) -> None:
    raise Killed


class TestWhoseFolder:
    def test_a_model_that_no_fusion_wrote_is_never_replaced(self, tmp_path):
        (tmp_path / "config.json").write_text("{}")
        for overwrite, sentence in ((False, "holds other files"), (True, "holds config.json, which no fusion wrote")):
            with pytest.raises(RunFolderError, match=sentence):
                publish(tmp_path, NEWER, overwrite)
        assert contents_of_files(tmp_path) == ["config.json"]
        assert not (tmp_path / WORK).exists()

    def test_models_that_are_fused_lie_elsewhere(self, tmp_path):
        publish(tmp_path / "a", OLDER)
        for model in (tmp_path / "a", tmp_path / "a" / "model.safetensors"):
            sentence = re.escape(f"holds a model that is to be fused ({model}); choose another folder")
            with pytest.raises(RunFolderError, match=sentence), own_folder(tmp_path / "a", True, [str(model)]):
                pass

    def test_one_at_a_time(self, tmp_path):
        with own_folder(tmp_path / "out", False, []), pytest.raises(RunFolderError, match="another fusion is at work"):
            publish(tmp_path / "out", NEWER)

    @pytest.mark.parametrize("files", [["../outside"], {"../outside": 1, "/etc/x": 1, ".": 1}, 5, None, {"a\0": 1}])
    def test_a_list_of_files_reaches_nothing_outside(self, files, tmp_path):
        (tmp_path / "outside").write_text("mine")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / FACTS).write_text(json.dumps({"files": files}))
        publish(tmp_path / "out", NEWER, overwrite=True)
        assert (tmp_path / "outside").read_text() == "mine"
        assert contents(tmp_path / "out") == NEWER

    @pytest.mark.parametrize(
        "note",
        [
            {"from": "../..", "files": ["outside"], "older": []},
            {"from": "result", "files": ["../outside"], "older": ["../outside"]},
            {"from": 5},
            [],
        ],
    )
    def test_neither_does_a_note(self, note, tmp_path):
        (tmp_path / "outside").write_text("mine")
        (tmp_path / "out" / WORK).mkdir(parents=True)
        (tmp_path / "out" / WORK / "moving.json").write_text(json.dumps(note))
        publish(tmp_path / "out", NEWER)
        assert (tmp_path / "outside").read_text() == "mine"
        assert contents(tmp_path / "out") == NEWER
