"""Parts from a folder outside the package, one for every slot: by address, by --set, as objects; resumed."""

from __future__ import annotations

import json

import pytest
import yaml

import fedfuse
from fedfuse.core.imports import import_object
from fedfuse.experiment.run import Experiment
from fedfuse.testing import check_part
from tests.cli.test_cli import in_process
from tests.helpers import files_of, without_seconds
from tests.outside.parts import PARTS, TINY

__all__ = ["in_process"]
pytestmark = pytest.mark.usefixtures("without_pictures", "here")
every_part = pytest.mark.parametrize("name", list(PARTS))


def made(outside):
    return import_object(outside.address, "test").model_validate(outside.values)


def from_file(outside, path):
    path.write_text(yaml.safe_dump(outside.sections(outside.as_file)))
    return Experiment.load(path)


def result_of(run):
    return files_of(run.folder.final), without_seconds([record.to_json() for record in run.history])


def stop(event):
    """Once there is a checkpoint."""
    if event["event"] == "round_started" and event["round"] == 2:
        raise KeyboardInterrupt


@every_part
def test_a_file_the_command_line_and_python_mean_the_same_experiment(in_process, tmp_path, name):
    outside = PARTS[name]
    written = from_file(outside, tmp_path / "experiment.yaml")
    as_object = Experiment(outside.sections(made(outside)))
    assert as_object.config == written.config
    assert as_object.config.sha256() == written.config.sha256()
    expected = result_of(written.run(tmp_path / "file"))
    assert result_of(fedfuse.run(outside.sections(made(outside)), out=tmp_path / "python")) == expected
    tiny = tmp_path / "tiny.yaml"
    tiny.write_text(yaml.safe_dump({**TINY, "method": outside.method}))
    change = f"{outside.key}={json.dumps(outside.wrap(outside.as_file))}"
    done = in_process("run", str(tiny), "--set", change, "--out", str(tmp_path / "set"), "--quiet")
    assert done.returncode == 0, done.stderr
    assert files_of(tmp_path / "set" / "final") == expected[0]


@every_part
def test_it_is_stopped_after_a_round_and_goes_on_to_the_same_bytes(tmp_path, name):
    experiment = Experiment(PARTS[name].sections(PARTS[name].as_file))
    expected = experiment.run(tmp_path / "straight")
    with pytest.raises(KeyboardInterrupt):
        experiment.run(tmp_path / "run", listeners=(stop,))
    resumed = Experiment.load(tmp_path / "run").run(tmp_path / "run", resume=True)
    assert result_of(resumed) == result_of(expected)


@pytest.mark.long
@every_part
def test_it_keeps_the_laws_and_those_that_work_on_clients_in_other_processes_too(name):
    check_part(made(PARTS[name]), workers=name in ("local", "protocol", "upload", "model", "teachers"))


@pytest.mark.long
def test_a_whole_method_keeps_the_laws():
    check_part("my_methods:FEDDYN")


def test_feddyn_without_strength_is_fedavg():
    check_part("my_methods:Dynamic", values={"strength": 0}, equals="fedavg", workers=False)


def test_teachers_that_are_the_clients_teach_as_the_clients():
    from fedfuse.parts.teachers import ClientTeachers

    check_part("my_teachers:Halfway", values={"share": 0}, equals=ClientTeachers(), workers=False)
