"""Misspelt keys are found before torch is imported, in the sentence that the schema would have for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from benchmarks.same_bits.__main__ import read_cases
from hypothesis import given, settings
from hypothesis import strategies as st

from fedfuse.catalogue.keys import every_place
from fedfuse.catalogue.misspelt import misspellings
from fedfuse.core.errors import ConfigError
from fedfuse.experiment import presets
from fedfuse.experiment.config import validate
from fedfuse.experiment.finding import check_keys
from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from tests.helpers import tiny_config

MISSPELT = [
    "lr=3",
    "rounds=3",
    "alpha=0.1",
    "momentum=0.9",
    "training.lr=0.1",
    "training.method=fedavg",
    "training.learning_rate=0.1",
    "training.epohcs=2",
    "training.optimizer.lr=0.1",
    "training.optimizer={kind: adagrad}",
    "training.schedule=linaer",
    "federation.clients=3",
    "federation.ronuds=3",
    "federation.clock.devices.sped=1",
    "federation.clock={devices: {speed: {kind: normal}}}",
    "partition.alhpa=0.3",
    "partition.kind=dirichelt",
    "partition={kind: iid, alpha: 1}",
    "partition.kind=iidd",
    "models.mlp.arch=resnet9",
    "models.mlp.hiden=[4]",
    "models.mlp.lr=1",
    "data.name=cifar",
    "data.nmae=x",
    "data.normalisation=hafl",
    "method=fedavgg",
    "method.name=fedpro",
    "method.lcoal={kind: plain}",
    "method.local.kind=proxmial",
    "method.local={kind: proximal, strenght: 3}",
    "method.fuse.distiller.stepz=3",
    "method.fuse.distiller.optimizer.lr=3",
    "method.fuse.teachers=[{kind: client}]",
    "method.upload=[{kind: clip, nrom: 1}]",
    "source.kind=heldout",
    "source={kind: dataset, data: {name: blobs, slpit: random}}",
    "data.sep=;",
    "source={kind: dataset, data: {name: blobs, Drop-Columns: [id]}}",
    "evaluation.metrics=[{kind: macrof1}]",
    "evaluation.evry=2",
    "compute.devcie=cpu",
    "compute.precision=bf61",
    "engine.wrokers=2",
    "engine={kind: rai}",
    "zzzzzz=1",
]


def sentence_of(call: Any, *arguments: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("assignment", MISSPELT)
def test_a_misspelling_gets_the_same_sentence_sooner(assignment: str) -> None:
    sooner = sentence_of(check_keys, "digits", [assignment])
    assert sooner == sentence_of(Experiment.load, "digits", [assignment])


@pytest.mark.parametrize(
    ("assignment", "meant"),
    [
        ("lr=3", "training.optimizer.learning_rate"),
        ("training.lr=3", "training.optimizer.learning_rate"),
        ("training.optimizer.lr=3", "training.optimizer.learning_rate"),
        ("method.fuse.distiller.lr=1", "method.fuse.distiller.optimizer.learning_rate"),
        ("batch_size=3", "training.batch_size"),
        ("num_clients=3", "partition.clients"),
        ("federation.clients=3", "partition.clients"),
        ("local_epochs=3", "training.epochs"),
        ("alpha=3", "partition.alpha"),
        ("dataset=mnist", "data"),
        ("strategy=fedavg", "method"),
        ("aggregation=mean", "method.merge"),
        ("learnign_rate=1", "training.optimizer.learning_rate"),
        ("training.epohcs=2", "epochs"),
        ("data.delimiter=;", "separator"),
        ("data.target=y", "label_column"),
        ("data.names=[a]", "labels"),
        ("data.dataset=mnist", "name"),
        ("source={kind: dataset, data: {name: blobs, fillna: 0}}", "empty_cells"),
    ],
)
def test_a_key_in_the_wrong_place_is_pointed_to_the_right_one(assignment: str, meant: str) -> None:
    assert f"(did you mean '{meant}'?)" in sentence_of(check_keys, "digits", [assignment])


@pytest.mark.parametrize(
    ("section", "key", "kinds"),
    [
        ("training.optimizer={kind: adam, momentum: 0.9}", "training.optimizer: unknown key 'momentum'", "sgd"),
        ("engine={kind: local, address: x}", "engine: unknown key 'address'", "ray"),
    ],
)
def test_a_key_of_other_kinds_names_them(section: str, key: str, kinds: str) -> None:
    """The very address that was written is no way out."""
    assert sentence_of(check_keys, "digits", [section]).endswith(f"{key} (it goes with {kinds})")


@pytest.mark.parametrize("name", presets.names())
@pytest.mark.parametrize("method", ["feddf", "fedmd", "fedgen", "scaffold"])
def test_nothing_of_ours_is_taken_for_misspelt(name: str, method: str) -> None:
    check_keys(name, [f"method={method}", "partition.kind=iid", "engine.workers=2", "federation.clock={}"])


@pytest.mark.parametrize("method", METHODS)
def test_a_complete_experiment_is_not_taken_for_misspelt(method: str) -> None:
    assert list(misspellings(tiny_config(method).model_dump(mode="json"), "it")) == []


def test_no_case_of_same_bits_is_taken_for_misspelt() -> None:
    cases = {name: spelled[0] for name, spelled in read_cases().items()}
    assert [name for name, raw in cases.items() if list(misspellings(raw, name))] == []


@pytest.mark.parametrize(
    "changes",
    [
        ["method={exchange: {kind: half}}"],
        ["method.fuse.weighting=validation"],
        ["method.local={kind: 'my_file:Mine', anything: 1}"],
        ["models.mlp={arch: 'my_file:Mine', anything: 1}"],
        ["method.scores=entropy"],
        ["data={name: 'hf:user/set'}"],
        ["partition=3"],
        ["training=null"],
        ["nonsense"],
        ["=1"],
        ["method.fuse=:"],
    ],
)
def test_what_cannot_be_told_here_is_left_to_the_schema(changes: list[str]) -> None:
    """None of these is refused for a misspelling that the schema does not see."""
    check_keys("digits", changes)


ADDRESSES = sorted(address for address in every_place() if "[]" not in address and "NAME" not in address)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(ADDRESSES), st.sampled_from(["1", "true", "null", "auto", "[]", "{}", "mean", "0.5"]))
def test_whoever_is_refused_here_would_be_refused_by_the_schema(address: str, value: str) -> None:
    raw: dict[str, Any] = yaml.safe_load(presets.text("digits"))
    node = raw
    *sections, name = address.split(".")
    for section in sections:
        node[section] = {"name": node[section]} if isinstance(node.get(section), str) else dict(node.get(section) or {})
        node = node[section]
    node[name] = yaml.safe_load(value)
    if problems := list(misspellings(raw, "it")):
        assert sentence_of(validate, raw, "it"), problems


def test_a_broken_file_is_refused_as_before(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("data: {name: digits\n")
    assert sentence_of(check_keys, file, []) == sentence_of(Experiment.load, file)
    file.write_text("training: {epohcs: 3}\n")
    assert "(did you mean 'epochs'?)" in sentence_of(check_keys, file, [])
