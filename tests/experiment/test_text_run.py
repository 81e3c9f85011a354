"""Federations of texts, from files to accuracy: a key word decides the class."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from tests.helpers import files_of, tiny_method, with_heads

pytestmark = pytest.mark.usefixtures("without_pictures")
KEYS = ("goal", "market", "planet")
NOT_FOR_TEXTS = {"fedaux", "feded-w2", "fedma"}
"""They say so, see below."""
FILLERS = ["the", "a", "of", "in", "it", "was", "said", "and", "for", "on", "new", "today", "more"]


def sentences(count: int, seed: int) -> tuple[list[str], list[int]]:
    draw = random.Random(seed)
    labels = [draw.randrange(3) for _ in range(count)]
    texts = []
    for label in labels:
        words = draw.choices(FILLERS, k=draw.randint(1, 12))
        words.insert(draw.randrange(len(words) + 1), KEYS[label])
        texts.append(" ".join(words))
    return texts, labels


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("texts")
    for part, count in (("train", 180), ("test", 50)):
        texts, labels = sentences(count, count)
        pq.write_table(pa.table({"text": texts, "label": labels}), place / f"{part}.parquet")
    (place / "more.txt").write_text("\n".join(sentences(80, 1)[0]))
    return place


def config(folder, method, arch="text_cnn", limit=None, **sections):
    return validate(
        with_heads(
            {
                "data": {
                    "name": "parquet",
                    "path": str(folder / "train.parquet"),
                    "test_path": str(folder / "test.parquet"),
                    "train_limit": limit,
                    "test_limit": limit,
                    "validation": 20,
                    "public": 40,
                    "text": {"max_length": 16, "vocabulary": 300},
                },
                "partition": {"kind": "dirichlet", "clients": 3, "alpha": 1.0, "min_examples": 5},
                "models": {"text": MODELS[arch]},
                "training": {"epochs": 5, "batch_size": 8, "optimizer": {"kind": "adam", "learning_rate": 0.01}},
                "federation": {"rounds": 2},
                "method": method,
                "methods": {"feddf": {"fuse": {"distiller": {"steps": 20, "batch_size": 16, "evaluate_every": 10}}}},
                **sections,
            }
        )
    )


MODELS = {
    "text_cnn": {"arch": "text_cnn", "embedding": 8, "channels": 8, "dropout": 0.1},
    "text_transformer": {"arch": "text_transformer", "width": 16, "heads": 2, "layers": 1},
}


@pytest.mark.parametrize("arch", list(MODELS))
@pytest.mark.parametrize("method", ["fedavg", "feddf", "fedgkd"])
def test_key_words_are_learnt(folder, tmp_path, method, arch):
    result = Experiment(config(folder, method, arch)).run(tmp_path / "run")
    assert result.accuracy["text"] > 0.9
    assert result.model().feature_size > 0


def test_same_seed_same_bits(folder, tmp_path):
    one, other = (Experiment(config(folder, "feddf", limit=100)).run(tmp_path / name) for name in ("one", "other"))
    assert files_of(one.folder.final) == files_of(other.folder.final)


@pytest.mark.parametrize("method", sorted(set(METHODS) - NOT_FOR_TEXTS))
def test_every_other_method_reads_texts(folder, tmp_path, method):
    once = {"training": {"epochs": 1, "batch_size": 8}, "federation": {"rounds": 1}}
    few = config(folder, tiny_method(method), limit=85, **once)
    Experiment(few).run(tmp_path / "run")


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "folder", "path": "more.txt"},
        {"kind": "dataset", "data": {"name": "parquet", "path": "test.parquet"}},
        {
            "kind": "dataset",
            "data": {"name": "parquet", "path": "test.parquet", "text": {"max_length": 16, "vocabulary": 300}},
        },
    ],
)
def test_unlabelled_texts_teach(folder, tmp_path, monkeypatch, source):
    monkeypatch.chdir(folder)
    result = Experiment(config(folder, "feddf", source=source)).run(tmp_path / "run")
    assert result.accuracy["text"] > 0.9
    assert result.summary["source"]["size"] in (80, 50)


@pytest.mark.parametrize(
    ("sections", "sentence"),
    [
        ({"models": {"text": {"arch": "resnet8"}}}, "resnet8 cannot read texts"),
        ({"models": {"text": {"arch": "mlp"}}}, "mlp cannot read texts"),
        ({"source": {"kind": "uniform_noise"}}, "source uniform_noise cannot make texts"),
        ({"source": {"kind": "gaussian_noise"}}, "source gaussian_noise cannot make texts"),
        ({"source": {"kind": "generator", "callable": "math:sin"}}, "source generator cannot make texts"),
        ({"source": {"kind": "dataset", "data": {"name": "digits"}}}, "'digits' has images, but .* read texts"),
        ({"source": {"kind": "dataset", "data": {"name": "digits", "text": {}}}}, r"source\.data\.text differs"),
        ({"source": {"kind": "folder", "path": "more.txt", "normalisation": "half"}}, "holds texts; remove it"),
        ({"source": {"kind": "folder", "path": "more.txt", "resize": 8}}, "holds texts; remove them"),
        ({"method": "feded-w2"}, "reconstruction cannot read texts"),
        ({"method": "fedaux"}, "contrastive .* texts are not"),
        ({"method": "fedma"}, "merge matched goes from layer to layer"),
    ],
)
def test_what_cannot_read_texts_says_so_before_round_1(folder, tmp_path, monkeypatch, sections, sentence):
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError, match=sentence):
        Experiment(config(folder, **{"method": "feddf", **sections})).run(tmp_path / "run")
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_text_models_refuse_images(tmp_path):
    settings = {"data": {"name": "digits"}, "models": {"text": MODELS["text_cnn"]}, "method": "fedavg"}
    with pytest.raises(ConfigError, match="text_cnn reads texts, but the data holds inputs of shape"):
        Experiment(settings).run(tmp_path / "run")
