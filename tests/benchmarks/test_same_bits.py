"""The comparison of two versions: its cases leave nothing out, and whatever differs is told."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import pytest
import torch
from benchmarks.same_bits.__main__ import main, read_cases, report, with_set
from benchmarks.same_bits.difference import compare
from benchmarks.same_bits.record import main as record
from pydantic import BaseModel
from safetensors.torch import load_file, save_file

from fedfuse.core.choice import OneIn, OneOf
from fedfuse.experiment.config import ExperimentConfig, validate
from fedfuse.methods import METHODS
from tests.helpers import tiny_config

pytestmark = pytest.mark.usefixtures("without_pictures")

ELSEWHERE = {
    "ComputeSettings.device": "this machine's kind of device is enough",
    "Encoder": "needs the extra text",
    "FlowerEngineSettings": "engines change no bits, and have tests of that",
    "RayEngineSettings": "the same",
    "Resources": "the same",
    "LocalEngineSettings": "the same",
    "TensorBoard": "trackers change no bits, and have a test of that",
    "Mlflow": "the same",
    "WeightsAndBiases": "the same",
    "Trackio": "the same",
    "projection_head": "the same code for every architecture, and there are cases of it",
    "Saved": "needs an earlier run's file",
    "DataSettings.test_path": "reading is the readers' affair, and has no bits of its own",
    "DataSettings.input_column": "the same",
    "DataSettings.client_files": "the same",
    "DataSettings.public": "official is for examples that Python gives; shares are numbers",
    "PublicData": "the same keys as data's, except normalisation",
    "UnlabelledFiles.input_column": "the same",
    "FrozenGenerator.file": "needs a trained generator's file",
    "TextSettings.lower": "the same",
    "label": "what tables call a method or a metric",
}
"""What no case has, and why."""


def test_every_method_is_a_case_as_published():
    cases = {name: validate(spelled[0]) for name, spelled in read_cases().items()}
    assert {config.method.name for config in cases.values()} == set(METHODS)
    assert all(cases[name].method.name == name for name in METHODS)


def test_what_is_set_is_set_for_this_version_only():
    plain = read_cases()["fedavg"]
    spelled = with_set(["compute.stack=false"], plain)
    assert spelled[0]["compute"] == {**plain[0]["compute"], "stack": False}
    assert spelled[1:] == plain
    assert with_set([], plain) == plain


def test_every_option_is_in_some_case():
    met = {option for spelled in read_cases().values() for option in chosen(validate(spelled[0]))}
    missing = [option for option in offered(ExperimentConfig) if option not in met and not is_excused(option)]
    assert not missing


def is_excused(option):
    name = option.partition("=")[0]
    part, _, key = name.partition(".")
    return bool({name, part, key} & ELSEWHERE.keys())


def offered(kind: Any, seen: set[Any] | None = None) -> Iterator[str]:
    """Every choice that a file can make: each value of a Literal, true and false, a value where none is the default."""
    seen = set() if seen is None else seen
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        if kind in seen:
            return
        seen.add(kind)
        for name, field in kind.model_fields.items():
            yield from (f"{kind.__name__}.{name}={value}" for value in values_of(field.annotation))
            slots = [meta for meta in field.metadata if isinstance(meta, OneOf | OneIn)]
            for inner in slots or [field.annotation]:
                yield from offered(inner, seen)
    elif isinstance(kind, OneOf):
        for part in kind.known:
            yield from offered(part, seen)
    elif isinstance(kind, OneIn):
        for part in kind.known().values():
            yield from offered(part, seen)
    else:
        inner = get_args(kind)
        slots = [meta for meta in inner if isinstance(meta, OneOf | OneIn)]
        for one in slots or inner:
            yield from offered(one, seen)


def values_of(annotation: Any) -> Iterator[str]:
    if annotation is bool:
        yield from ("True", "False")
    elif get_origin(annotation) is Literal:
        yield from map(str, get_args(annotation))
    elif get_origin(annotation) in (Union, types.UnionType):
        if type(None) in get_args(annotation):
            yield "something"
        for inner in get_args(annotation):
            yield from values_of(inner)
    elif get_origin(annotation) is tuple:
        yield from values_of(get_args(annotation)[0])


def chosen(part: BaseModel) -> Iterator[str]:
    """The same choices, as one config makes them."""
    for name in type(part).model_fields:
        value = getattr(part, name)
        if value is not None:
            yield f"{type(part).__name__}.{name}=something"
        children = value if isinstance(value, tuple) else value.values() if isinstance(value, dict) else (value,)
        for child in children:
            yield f"{type(part).__name__}.{name}={child}"
            if isinstance(child, BaseModel):
                yield from chosen(child)


@pytest.fixture
def recorded(tmp_path):
    """One tiny case, recorded twice; gives the folders of the case."""
    values = tiny_config("fedavg").model_dump(mode="json", exclude={"name"})
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps({"one": [{**values, "name": "one"}]}))
    for which in ("before", "now"):
        record(cases, tmp_path / which)
    return tmp_path / "before" / "one", tmp_path / "now" / "one"


def test_two_runs_of_one_version_are_the_same(recorded, capsys):
    difference = compare("one", *recorded)
    assert not difference.is_one
    assert report([difference], "0" * 40) == 0
    assert "1 of 1 cases are the same as at 000000000000" in capsys.readouterr().out


def test_a_changed_bit_of_the_weights_is_told(recorded, capsys):
    path = recorded[1] / "run" / "final" / "mlp.safetensors"
    tensors = load_file(path)
    name = min(tensors)
    tensors[name].view(-1)[0] = torch.nextafter(tensors[name].view(-1)[0], torch.tensor(9.0))
    save_file(tensors, path)
    difference = compare("one", *recorded)
    assert difference.weights[0].startswith("mlp by up to ")
    assert not difference.log
    assert not difference.bytes
    assert report([difference], "0" * 40) == 1
    assert "1 in weights, 0 in log, 0 in bytes differ" in capsys.readouterr().out


def test_a_changed_log_and_changed_bytes_are_told(recorded):
    path = recorded[1] / "run" / "events.jsonl"
    events = [json.loads(line) for line in path.read_text().splitlines()]
    finished = [event for event in events if event["event"] == "round_finished"]
    finished[0]["bytes_up"] += 1
    finished[1]["prototypes"]["mlp"]["loss"] = 7.0
    finished[1]["new"] = 1
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    difference = compare("one", *recorded)
    assert len(difference.bytes) == 1
    assert [text.split()[0].split(".", 1)[1] for text in difference.log] == [
        "round_finished.prototypes.mlp.loss",
        "round_finished.new",
    ]


def test_a_case_that_does_not_run_is_never_the_same(tmp_path, capsys):
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps({"broken": [{"method": "no such thing"}]}))
    for which in ("before", "now"):
        record(cases, tmp_path / which)
    difference = compare("broken", tmp_path / "before" / "broken", tmp_path / "now" / "broken")
    assert "runs in neither version" in difference.ending
    assert report([difference], "0" * 40) == 1
    assert "unknown method 'no such thing'" in capsys.readouterr().out


def test_what_the_older_version_refuses_is_new_and_no_difference(recorded, tmp_path, capsys):
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "error").write_text("ConfigError: unknown kind 'top_k'")
    difference = compare("top-k", tmp_path / "older", recorded[1])
    assert report([difference], "0" * 40) == 0
    assert "1 are new" in capsys.readouterr().out
    assert compare("top-k", recorded[1], tmp_path / "older").ending, "only the older one may refuse it"


def test_an_older_version_is_told_in_its_own_words(tmp_path):
    values = tiny_config("fedavg").model_dump(mode="json")
    cases = tmp_path / "cases.json"
    cases.write_text(json.dumps({"renamed": [{**values, "newname": 1}, values]}))
    record(cases, tmp_path / "runs")
    assert not (tmp_path / "runs" / "renamed" / "error").exists()
    assert (tmp_path / "runs" / "renamed" / "run" / "summary.json").exists()


def test_a_case_is_not_recorded_twice_unless_it_changed(tmp_path, recorded):
    summary = recorded[0] / "run" / "summary.json"
    summary.unlink()
    record(tmp_path / "cases.json", tmp_path / "before")
    assert not summary.exists()
    cases = json.loads((tmp_path / "cases.json").read_text())
    cases["one"][0]["seed"] = 5
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    record(tmp_path / "cases.json", tmp_path / "before")
    assert summary.exists()


def test_what_is_no_commit_is_said(capsys):
    with pytest.raises(SystemExit):
        main(["no-such-commit"])
    assert "'no-such-commit' is no commit of this repository" in capsys.readouterr().err
