"""Tokenizers of transformers, without the package: what is made of their answers, and which encoder they fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.data import pretrained_tokens
from fedfuse.data.pretrained_tokens import Pretrained, check_encoder
from fedfuse.data.tokens import TextSettings
from fedfuse.experiment.config import validate
from fedfuse.experiment.run import Experiment

VOCABULARIES = {
    "distilbert-base-uncased": {"[PAD]": 0, "good": 1, "bad": 2},
    "bert-base-uncased": {"[PAD]": 0, "good": 1, "bad": 2},
    "bert-base-cased": {"[PAD]": 0, "Good": 1, "bad": 2},
}


class Known:
    """As much of a tokenizer of transformers as is asked here."""

    unk_token_id = 7

    def __init__(self, name: str) -> None:
        self.name = name

    def get_vocab(self) -> dict[str, int]:
        return VOCABULARIES[self.name]

    def __call__(self, texts, **_options):
        """The answer for texts with the literal word [PAD] in their middle."""
        return {"input_ids": [[2, 0, 0, 5, 3] for _ in texts]}


@pytest.fixture
def hub(monkeypatch):
    """Whatever is loaded; gives the names that were."""
    loaded = []

    def load(name, where="data.text.tokenizer"):
        loaded.append(name)
        if name not in VOCABULARIES:
            raise DataError(f"{where}: the tokenizer {name} could not be loaded")
        return Known(name)

    monkeypatch.setattr(pretrained_tokens, "_load", load)
    return loaded


def check(tokenizer: str, encoder: str = "distilbert-base-uncased") -> None:
    check_encoder(TextSettings(tokenizer=tokenizer), encoder, "models.bert")


def test_the_word_for_padding_is_an_unknown_one_inside_a_text():
    row = Pretrained(6, "any", "any", Known("any"))(["[PAD] [PAD] film"])[0]
    assert row.tolist() == [2, 7, 7, 5, 3, 0]


def test_the_encoders_own_tokenizer_is_known_by_its_name(hub):
    check("distilbert-base-uncased")
    assert hub == []


def test_a_folder_is_the_same_however_it_is_written(hub, tmp_path: Path, monkeypatch):
    (tmp_path / "bert").mkdir()
    monkeypatch.chdir(tmp_path)
    check("bert", str(tmp_path / "bert"))
    check("./bert/", "bert")
    assert hub == []


def test_another_tokenizer_with_the_same_numbers_will_do(hub):
    check("bert-base-uncased")
    assert sorted(hub) == ["bert-base-uncased", "distilbert-base-uncased"]


@pytest.mark.parametrize("tokenizer", ["words", "bytes", "bert-base-cased"])
@pytest.mark.usefixtures("hub")
def test_other_numbers_are_refused(tokenizer):
    with pytest.raises(ConfigError) as error:
        check(tokenizer)
    assert str(error.value) == (
        "models.bert was pre-trained on the tokens of distilbert-base-uncased, but data.text.tokenizer is "
        f"{tokenizer}, which numbers them in another way; set it to distilbert-base-uncased"
    )


@pytest.mark.usefixtures("hub")
def test_an_encoder_without_a_tokenizer_is_named():
    with pytest.raises(DataError, match=r"models\.bert: the tokenizer somewhere could not be loaded"):
        check("bert-base-uncased", "somewhere")


def test_a_run_is_refused_before_the_network_is_loaded(tmp_path: Path):
    (tmp_path / "t.csv").write_text("text,label\n" + "good,1\nbad,0\n" * 20)
    config = validate(
        {
            "data": {"name": "csv", "path": str(tmp_path / "t.csv")},
            "partition": {"kind": "iid", "clients": 2},
            "models": {"bert": {"arch": "distilbert", "pretrained": "distilbert-base-uncased"}},
        }
    )
    with pytest.raises(ConfigError, match=r"data\.text\.tokenizer is words"):
        Experiment(config).run(tmp_path / "run")
    assert not (tmp_path / "run" / "config.yaml").exists()
