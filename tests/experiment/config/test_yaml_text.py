"""YAML: what it may say, and the sentence for what it may not; none of them takes long."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.core.yaml_text import dump_yaml
from fedfuse.experiment.config import assign, load_yaml, read_yaml, validate
from fedfuse.experiment.config.schema import LONGEST_NAME

SMALL = "data: {name: digits}\nmodels: {m: {arch: mlp}}\n"
RAW: dict[str, Any] = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}}


def bomb(levels: int, inner: str = "1", merge: bool = False) -> str:
    """Ten aliases of ten aliases of ...: 10 ** levels values."""
    lines = [f"a0: &a0 {{k: {inner}}}" if merge else f"a0: &a0 [{inner}]"]
    for level in range(1, levels + 1):
        before = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} " + (f"{{<<: [{before}]}}" if merge else f"[{before}]"))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (bomb(9), "more than 100,000 values, with aliases written out in line 6"),
        (bomb(9, merge=True), "more than 100,000 values, with aliases written out in line"),
        (SMALL + "name: " + bomb(9).replace("\n", ", ").replace("a0:", "{a0:", 1)[:-2] + "}", "more than 100,000"),
        ("a: &a [*a]", "an alias stands inside of what it names in line 1"),
        ("a: &a {b: {c: *a}}", "an alias stands inside of what it names"),
        ("a: &a {<<: *a}", "an alias stands inside of what it names"),
        ("x: " + "[" * 100_000, "nested more than 50 deep in line 1"),
        ("x: " + "[" * 900 + "]" * 900, "nested more than 50 deep"),
        (
            "\n".join([f"a{n}: &a{n} [[[[[[[[*a{n - 1}]]]]]]]]" if n else "a0: &a0 [1]" for n in range(99)]),
            "nested more than 50 deep, with aliases written out",
        ),
        ("x: !!binary aGVsbG8=", "nothing of the kind '!!binary' in line 1"),
        ("x: !!set {a, b}", "nothing of the kind '!!set'"),
        ("x: !!omap [a: 1]", "nothing of the kind '!!omap'"),
        ("x: !!timestamp 2024-01-01", "nothing of the kind '!!timestamp'"),
        ("x: !!python/object/apply:os.system [true]", "nothing of the kind '!!python/object/apply:os.system'"),
        ("? [a, b]\n: 1", "a key is a list or a mapping"),
        ("{a: 1}: 1", "a key is a list or a mapping"),
        ("seed: " + "9" * 5000, "a number is longer than 100 digits in line 1"),
        ("seed: 0x" + "f" * 5000, "longer than 100 digits"),
        ("seed: " + ":".join(["1"] * 5000), "longer than 100 digits"),
        ("seed: !!int many", "'many' is no int in line 1"),
        ("seed: !!int ''", "'' is no int"),
        ("seed: !!bool maybe", "'maybe' is no bool"),
        ('name: "\\ud800"', "half of a character in line 1"),
        ('name: "\\UFFFFFFFF"', "a number in it is too high"),
        ("a: 1\na: 2", "the key 'a' is written twice in line 2"),
        ("a: 1\n'a': 2", "the key 'a' is written twice in line 2"),
        ("a: *b", "found undefined alias 'b' in line 1"),
        ("a: {<<: 5}", "expected a mapping or list of mappings for merging"),
        ("#" * 1_000_001, "longer than a megabyte"),
    ],
)
def test_what_no_experiment_says(text: str, sentence: str) -> None:
    began = time.process_time()
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        load_yaml(text, "file")
    assert time.process_time() - began < 2
    assert len(str(caught.value)) < 300


def test_what_becomes_of_a_value_does_not_change_what_its_text_stands_for() -> None:
    text = "method: {screen: [{kind: krum}]}"
    load_yaml(text, "here")["method"]["screen"].clear()
    assert load_yaml(text, "here") == {"method": {"screen": [{"kind": "krum"}]}}


def test_merge_keys_and_aliases_are_what_yaml_says() -> None:
    text = """
    base: &base {arch: mlp, hidden: [8]}
    wide: &wide {hidden: [64], projection_head: 4}
    models: {a: *base, b: {<<: *base, hidden: [4]}, c: {<<: [*wide, *base]}}
    """
    models = load_yaml(text, "file")["models"]
    assert models["a"] == {"arch": "mlp", "hidden": [8]}
    assert models["b"] == {"arch": "mlp", "hidden": [4]}
    assert models["c"] == {"arch": "mlp", "hidden": [64], "projection_head": 4}


def test_a_merged_key_may_be_said_again_wherever_it_is_merged() -> None:
    """Also by a mapping that is itself merged into one that is read before it."""
    text = "a: {<<: &b {<<: &c {x: 1}, x: 2}}\nb: *b\nc: *c\n"
    assert load_yaml(text, "file") == {"a": {"x": 2}, "b": {"x": 2}, "c": {"x": 1}}


def test_keys_are_texts_and_dates_too() -> None:
    text = "1: a\nyes: b\nnull: c\n2024-01-01: 2024-01-02\n1.5: on\n"
    assert load_yaml(text, "file") == {"1": "a", "yes": "b", "null": "c", "2024-01-01": "2024-01-02", "1.5": True}


def test_json_is_yaml_with_its_pairs() -> None:
    assert load_yaml('{"a": "\\ud83d\\ude00", "b": "😀"}', "file") == {"a": "😀", "b": "😀"}


@pytest.mark.parametrize(
    "sign", ["\x85", "\u2028", "\u2029", "\ufeff", "\t", "\r", "\n", "\x00", "\x7f", "\ue000", "\U0001f600"]
)
def test_what_is_written_is_read(sign: str) -> None:
    value = {f"a{sign}": sign, sign: [f"{sign} b", f"c {sign}{sign}"], "plain": "ü: yes"}
    assert load_yaml(dump_yaml(value), "x") == value


def test_numbers_stay_numbers() -> None:
    assert load_yaml("[1, -2, 0x10, 010, 1_000, 1.5, 1.0e+3, .inf, ~, off]", "file") == [
        *(1, -2, 16, 8, 1000, 1.5, 1000.0, float("inf")),
        *(None, False),
    ]


def test_a_date_is_a_name() -> None:
    assert validate(load_yaml(f"{SMALL}name: 2024-01-01\n", "file")).name == "2024-01-01"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\xff\xfe", "is not a text file in UTF-8"),
        (b"#" * 10_000_000, "is longer than a megabyte"),
        ("é".encode() * 500_001, "is longer than a megabyte"),
        (b"- 1", "should be a mapping of keys"),
        (b"a: \0", "is not YAML"),
    ],
)
def test_files(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "e.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        read_yaml(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("methods: 5", "methods is 5, but should be a mapping"),
        ("method: {name: []}", "unknown method '[]'"),
        ("methods: {feddf: [1]}", "methods.feddf is [1], but should be a mapping"),
        ("methods: {[a]: 1}", "a key is a list"),
        ("method: {name: fedavg, exchange: {kind: []}}", "method.protocol"),
        (
            "method: {name: fedavg, fuse: {weighting: testimony}, exchange: {kind: scored_weights, weighting: 5}}",
            "scores",
        ),
        ("methods: {fedavg: {protocol: 5}}", "methods.fedavg.protocol"),
        ("methods: {fedavg: {upload: 5}}", "methods.fedavg.upload is 5, but should be a list"),
        ("methods: {fedavg: {pooled: []}}", "methods.fedavg.pooled is [], but should be true or false"),
        (f"name: {'n' * 300}", "but should be text of at most 100 characters"),
        (f"method: {{name: fedavg, label: {'n' * 300}}}", "method.label is 'nnn"),
        ("seed: " + "9" * 60, "seed is 999"),
        (f"? {'k' * 500_000}\n: 1", "unknown key 'kkk"),
        ("data: {name: digits, resize: " + "[1, " * 20 + "]" * 20 + "}", "data.resize is [1, [1, [1"),
        (
            f"federation: {{assigned: [{', '.join(['m' * 64] * 8000)}]}}",
            "federation.assigned names the models of 8,000",
        ),
    ],
)
def test_what_an_experiment_may_not_be(text: str, sentence: str) -> None:
    own = {key for key in ("data", "models") if text.startswith(key)}
    base = "".join(line for line in SMALL.splitlines(keepends=True) if line.partition(":")[0] not in own)
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        validate(load_yaml(base + text, "file"), "file")
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ["m" * (LONGEST_NAME + 1), "é" * (LONGEST_NAME // 2 + 1)])
def test_a_model_with_a_long_name_is_refused_before_it_names_a_file(name: str) -> None:
    with pytest.raises(ConfigError, match=r"models: .* is longer than 100 bytes: it names a file"):
        validate({**RAW, "models": {name: {"arch": "mlp"}}})
    validate({**RAW, "models": {name[:-1]: {"arch": "mlp"}}})


def circle() -> dict[str, Any]:
    inner: dict[str, Any] = {}
    inner["fuse"] = inner
    return {"feddf": inner}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"methods": circle()}, "nested more than 50 deep"),
        ({"federation": {"rounds": 10**5000}}, "a number is longer than 100 digits"),
        ({"federation": {"assigned": ["m"] * 200_000}}, "more than 100,000 values"),
        ({"name": "\ud800"}, r"'\ud800' holds half of a character"),
        ({"models": {"m": {"arch": "own", "callable": "a:b", "arguments": {"x": "\ud800"}}}}, "half of a character"),
        ({"name": {1, 2}}, "name is {1, 2}, but should be text"),
    ],
)
def test_what_only_python_can_hand_over(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        validate({**RAW, **changes})


@pytest.mark.parametrize(
    ("assignment", "sentence"),
    [
        ("name=\udcff", r"the assignment 'name=\udcff': the value is not YAML"),
        ("\udcff=1", r"'\udcff' holds half of a character"),
        ("a." * 100 + "a=1", "nothing lies more than 50 keys deep"),
        ("training.epochs=[", "the assignment training.epochs=[: the value is not YAML"),
        ("seed=" + "9" * 5000, "a number is longer than 100 digits"),
        ("seed=!!set {a}", "nothing of the kind '!!set'"),
        ("name=" + "a" * 2_000_000, "is longer than a megabyte"),
        ("data.name.x=1", "'data.name' is 'digits' and has no keys below it"),
    ],
)
def test_assignments(assignment: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)) as caught:
        validate(assign(RAW, [assignment]))
    assert len(str(caught.value)) < 600
