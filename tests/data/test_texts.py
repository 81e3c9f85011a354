"""Texts from every kind of file: the same rows of numbers, read once, or refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.data import CATALOGUE, DataSettings, Transform, load
from fedfuse.data.readers import Reading
from fedfuse.data.tokens import TextSettings, Words
from fedfuse.data.unlabelled import read_unlabelled

TEXTS = ["a good film", "bad, so bad", 'they said "no"\nand left', "", "fine"]
LABELS = [1, 0, 0, 1, 1]
WORDS = Words(5, 100, lower=True)
SHORT = TextSettings(max_length=5, vocabulary=100)


def write_parquet(path: Path, column: str = "text", **more: list[object]) -> Path:
    pq.write_table(pa.table({"number": [1, 2, 3, 4, 5], column: TEXTS, "label": LABELS, **more}), path)
    return path


def write_csv(path: Path, column: str = "text") -> Path:
    rows = "".join('{},"{}",{},any\n'.format(0, t.replace('"', '""'), y) for t, y in zip(TEXTS, LABELS, strict=True))
    path.write_text(f"number,{column},label,remark\n{rows}", encoding="utf-8")
    return path


def loaded(**values):
    return load(DataSettings(text=SHORT, **values), Key(0))


@pytest.mark.parametrize("column", ["text", "sentence", "content", "review"])
@pytest.mark.parametrize(("name", "write"), [("parquet", write_parquet), ("csv", write_csv)])
def test_tables(tmp_path, name, write, column):
    named = {"input_column": "review"} if column == "review" else {}
    dataset = loaded(name=name, path=str(write(tmp_path / f"t.{name}", column)), **named)
    assert np.array_equal(dataset.train.inputs.numpy(), WORDS(TEXTS))
    assert dataset.train.labels.tolist() == LABELS
    assert dataset.shape == (5,)
    assert dataset.model_shape == TextShape(5, 100)


def test_arrays_and_functions(tmp_path, monkeypatch):
    np.savez(tmp_path / "t.npz", x=np.array(TEXTS), y=np.array(LABELS))
    (tmp_path / "my_texts.py").write_text(f"def load():\n    return {TEXTS!r}, {LABELS!r}\n")
    monkeypatch.chdir(tmp_path)
    for settings in ({"name": "npz", "path": "t.npz"}, {"name": "python", "path": "my_texts:load"}):
        assert np.array_equal(loaded(**settings).train.inputs.numpy(), WORDS(TEXTS))


def test_clients_of_texts(tmp_path):
    path = write_parquet(tmp_path / "t.parquet", writer=["b", "a", "a", "b", "b"])
    owners = loaded(name="parquet", path=str(path), client_column="writer").train.owners
    assert owners is not None
    assert owners.names == ("a", "b")


@pytest.mark.parametrize("name", ["u.parquet", "u.csv", "u.npz", "u.txt"])
def test_unlabelled_texts(tmp_path, name):
    lines = ["one line", "  ", "another, with a comma"]
    kept = [line for line in lines if line.strip()]
    if name == "u.txt":
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    elif name == "u.csv":
        (tmp_path / name).write_text("text\n" + "\n".join(f'"{line}"' for line in kept))
    elif name == "u.npz":
        np.savez(tmp_path / name, np.array(kept))
    else:
        pq.write_table(pa.table({"text": kept}), tmp_path / name)
    found = read_unlabelled(tmp_path / name, Reading(labelled=False, tokenizer=WORDS))
    assert np.array_equal(found, WORDS(kept))


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"", "u.txt is empty"), (b" \n\n", "u.txt is empty"), (b"\xff\xfe", "is not UTF-8")]
)
def test_text_files_that_cannot_be_read(tmp_path, content, sentence):
    (tmp_path / "u.txt").write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        read_unlabelled(tmp_path / "u.txt", Reading(labelled=False, tokenizer=WORDS))


def test_json_lines_of_a_known_dataset(tmp_path, monkeypatch):
    folder = tmp_path / "datasets--SetFit--sst2" / "snapshots" / "main"
    folder.mkdir(parents=True)
    lines = "\n".join(
        json.dumps({"text": text, "label": label, "label_text": "x"}) for text, label in zip(TEXTS, LABELS, strict=True)
    )
    for part in ("train", "test"):
        (folder / f"{part}.jsonl").write_text(lines)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("FEDFUSE_DATA", raising=False)
    dataset = loaded(name="sst2")
    assert dataset.test is not None
    assert np.array_equal(dataset.test.inputs.numpy(), WORDS(TEXTS))
    (folder / "train.jsonl").write_text('{"text": "a", "label"')
    with pytest.raises(DataError, match="one object per line"):
        loaded(name="sst2")


def test_texts_are_tokenised_once(tmp_path, monkeypatch):
    path = str(write_parquet(tmp_path / "t.parquet"))
    first = loaded(name="parquet", path=path)
    monkeypatch.setattr(Words, "numbers", lambda *_: pytest.fail("tokenised again"))
    assert torch.equal(loaded(name="parquet", path=path).train.inputs, first.train.inputs)
    with pytest.raises(pytest.fail.Exception):
        load(DataSettings(name="parquet", path=path, text=TextSettings(max_length=4)), Key(0))


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"resize": 8}, r"data\.resize is for images, but t\.parquet holds texts"),
        ({"augment": ["flip"]}, r"data\.augment is for images, but t\.parquet holds texts"),
        ({"normalisation": "half"}, r"data\.normalisation is for images and numbers"),
    ],
)
def test_what_is_for_images_is_refused(tmp_path, values, sentence):
    with pytest.raises(ConfigError, match=sentence):
        loaded(name="parquet", path=str(write_parquet(tmp_path / "t.parquet")), **values)


def test_what_is_for_texts_is_refused_elsewhere():
    with pytest.raises(ConfigError, match=r"data\.text is for texts, but scikit-learn holds none"):
        loaded(name="digits")


def test_a_missing_text_is_named_by_its_row(tmp_path):
    pq.write_table(pa.table({"text": ["a", None], "label": [0, 1]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"t\.parquet, column 'text', row 1: the text is missing"):
        loaded(name="parquet", path=str(tmp_path / "t.parquet"))


def test_a_known_dataset_must_hold_texts(tmp_path):
    for part in ("train", "test"):
        pq.write_table(pa.table({"x": [[1.0], [2.0]], "label": [0, 1]}), tmp_path / f"sst5-{part}.parquet")
    with pytest.raises(DataError, match="holds no texts, but SST-5"):
        loaded(name="sst5", path=str(tmp_path))


def test_cards_of_texts_say_so():
    assert {name for name, card in CATALOGUE.items() if card.is_text} == {"ag_news", "sst2", "sst2_phrases", "sst5"}
    assert CATALOGUE["ag_news"].inputs == "text"
    assert CATALOGUE["mnist"].inputs == "1x28x28"


def test_the_transform_cuts_a_batch_to_its_longest_text(tmp_path):
    dataset = loaded(name="parquet", path=str(write_parquet(tmp_path / "t.parquet")))
    transform = Transform.of(dataset, DataSettings(name="parquet", path="t"))
    inputs = dataset.train.inputs
    assert transform(inputs[[0, 4]]).tolist() == inputs[[0, 4], :3].tolist()
    assert transform(inputs).dtype == torch.int64
    assert torch.equal(transform(inputs), inputs.long())
    assert not transform.augments
