"""Folders of transformers: asked as transformers does, written so that it reads them, and hostile ones refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.fusing.members import find_blueprint, open_member
from tests.fusing.members.asking import close, said_by
from tests.fusing.members.conftest import NAMES, WORDS, tokenizer

transformers: Any = pytest.importorskip("transformers")
TEXTS = ["good film", "very very bad film", "unheard"]


def by_transformers(folder: Path, images: Tensor) -> Tensor:
    network = transformers.AutoModelForImageClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits: Tensor = network(pixel_values=(images / 255 - 0.5) / 0.5).logits
    return logits


@pytest.fixture
def copy(vit: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(vit, tmp_path / "copy"))


def change(folder: Path, **keys: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **keys}))
    return folder


def test_a_folder_says_what_transformers_says(vit: Path, images: Tensor) -> None:
    member = open_member(vit)
    assert close(said_by(member, images), by_transformers(vit, images), 1e-6)
    about = member.about
    assert (about.name, about.architecture, about.class_names) == ("vit", "ViTForImageClassification", NAMES)
    assert (about.shape, about.reads, about.format) == ((3, 8, 8), "images", "Hugging Face")
    network = transformers.AutoModelForImageClassification.from_pretrained(vit)
    assert about.parameters == network.num_parameters()
    assert "preprocessor_config.json" in about.notes[0]


def test_its_preprocessor_is_followed(copy: Path, images: Tensor) -> None:
    processor = transformers.ViTImageProcessorPil(
        size={"height": 8, "width": 8}, image_mean=[0, 0, 0], image_std=[1] * 3
    )
    processor.save_pretrained(copy)
    member = open_member(copy)
    network = transformers.AutoModelForImageClassification.from_pretrained(copy).eval()
    large = images.repeat_interleave(3, dim=2)
    pictures = [image.permute(1, 2, 0).numpy() for image in large]
    with torch.no_grad():
        expected = network(**processor(pictures, return_tensors="pt")).logits
    assert close(said_by(member, large), expected)
    assert member.about.notes == ()
    assert close(said_by(open_member(copy, normalise="half"), images), by_transformers(copy, images))


def test_shards_and_pickled_weights_are_the_same_model(vit: Path, images: Tensor, tmp_path: Path) -> None:
    network = transformers.AutoModelForImageClassification.from_pretrained(vit)
    network.save_pretrained(tmp_path / "shards", max_shard_size="2KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    expected = said_by(open_member(vit), images)
    assert torch.equal(said_by(open_member(tmp_path / "shards"), images), expected)
    (tmp_path / "old").mkdir()
    shutil.copy(vit / "config.json", tmp_path / "old")
    torch.save(load_file(vit / "model.safetensors"), tmp_path / "old" / "pytorch_model.bin")
    assert torch.equal(said_by(open_member(tmp_path / "old"), images), expected)


def test_half_precision_is_computed_in_float32(copy: Path, images: Tensor) -> None:
    weights = {name: tensor.half() for name, tensor in load_file(copy / "model.safetensors").items()}
    save_file(weights, copy / "model.safetensors")
    change(copy, dtype="float16")
    member = open_member(copy)
    assert member.about.dtype == "float16"
    network = transformers.AutoModelForImageClassification.from_pretrained(copy, dtype=torch.float32).eval()
    with torch.no_grad():
        assert close(said_by(member, images), network(pixel_values=(images / 255 - 0.5) / 0.5).logits)


def test_names_of_weights_there_and_back(vit: Path, images: Tensor) -> None:
    member = open_member(vit)
    blueprint = find_blueprint(member, images, NAMES)
    network = blueprint.build(3, Key(1)).eval()
    assert not close(network(blueprint.prepare(images)), said_by(member, images))
    assert member.weights is not None
    blueprint.load(network, member.weights)
    assert close(network(blueprint.prepare(images)), said_by(member, images), 1e-6)
    back, stored = blueprint.weights_of(network), load_file(vit / "model.safetensors")
    assert back.keys() == stored.keys()
    assert all(torch.equal(back[name], stored[name]) for name in stored)
    with pytest.raises(ConfigError, match="holds nothing that fits"):
        blueprint.load(network, {name: tensor for name, tensor in stored.items() if "cls_token" not in name})


def test_student_with_other_classes_is_written_for_from_pretrained(vit: Path, images: Tensor, tmp_path: Path) -> None:
    blueprint = find_blueprint(vit, images, ("left", "right"))
    network = blueprint.build(2, Key(1)).eval()
    assert torch.equal(blueprint.weights_of(network)["vit.embeddings.cls_token"], _cls_token(vit))
    twin = blueprint.build(2, Key(1))
    assert all(torch.equal(a, b) for a, b in zip(network.parameters(), twin.parameters(), strict=True))
    files = blueprint.write(tmp_path, network, ("left", "right"), {})
    assert {file.name for file in files} == {"config.json", "model.safetensors", "preprocessor_config.json"}
    assert {file.name for file in tmp_path.iterdir()} == {file.name for file in files}
    before = {file.name: file.read_bytes() for file in files}
    assert {
        file.name: file.read_bytes() for file in blueprint.write(tmp_path, network, ("left", "right"), {})
    } == before
    theirs = transformers.AutoModelForImageClassification.from_pretrained(tmp_path).eval()
    assert theirs.config.id2label == {0: "left", 1: "right"}
    assert theirs.config.label2id == {"left": 0, "right": 1}
    with torch.no_grad():
        assert close(theirs(pixel_values=blueprint.prepare(images)).logits, network(blueprint.prepare(images)), 1e-6)
    again = open_member(tmp_path)
    assert close(said_by(again, images), network(blueprint.prepare(images)).detach(), 1e-6)
    assert (again.about.class_names, again.about.notes) == (("left", "right"), ())
    processor = transformers.ViTImageProcessorPil.from_pretrained(tmp_path)
    assert close(processor([images[0]], return_tensors="pt")["pixel_values"], blueprint.prepare(images[:1]))


def _cls_token(folder: Path) -> Tensor:
    return load_file(folder / "model.safetensors")["vit.embeddings.cls_token"]


def test_student_of_the_same_classes_keeps_its_head_and_a_fresh_one_nothing(vit: Path, images: Tensor) -> None:
    kept = find_blueprint(vit, images, NAMES)
    assert close(kept.build(3, Key(1)).eval()(kept.prepare(images)), said_by(open_member(vit), images), 1e-6)
    renamed = find_blueprint(vit, images, ("a", "b", "c")).build(3, Key(1)).state_dict()
    assert not torch.equal(
        renamed["inner.classifier.weight"], kept.build(3, Key(1)).state_dict()["inner.classifier.weight"]
    )
    fresh = find_blueprint({"folder": vit, "fresh": True}, images, NAMES)
    assert not torch.equal(fresh.weights_of(fresh.build(3, Key(1)))["vit.embeddings.cls_token"], _cls_token(vit))


def test_texts(bert: Path, tmp_path: Path) -> None:
    member = open_member(bert)
    network = transformers.AutoModelForSequenceClassification.from_pretrained(bert).eval()
    theirs = transformers.AutoTokenizer.from_pretrained(bert)
    for texts in (TEXTS, ["film " * 40]):
        with torch.no_grad():
            tokens = theirs(texts, truncation=True, max_length=10, padding=True, return_tensors="pt")
            assert close(said_by(member, texts), network(**tokens).logits, 1e-6)
    assert (member.about.reads, member.about.shape, member.about.class_names) == ("texts", (10,), None)
    blueprint = find_blueprint(bert, TEXTS, ("no", "maybe", "yes"))
    student = blueprint.build(3, Key(2)).eval()
    blueprint.write(tmp_path, student, ("no", "maybe", "yes"), {})
    again = open_member(tmp_path)
    assert close(said_by(again, TEXTS), student(blueprint.prepare(TEXTS)).detach(), 1e-6)
    assert again.about.vocabulary == member.about.vocabulary
    assert again.about.class_names == ("no", "maybe", "yes")


def test_an_encoder_is_no_teacher_but_a_student(bert: Path, tmp_path: Path) -> None:
    network = transformers.AutoModelForSequenceClassification.from_pretrained(bert)
    network.bert.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(bert).save_pretrained(tmp_path)
    with pytest.raises(DataError, match="'BertModel', which is no classifier of images or texts and so cannot teach"):
        open_member(tmp_path)
    blueprint = find_blueprint(tmp_path, TEXTS, ("no", "yes"))
    student = blueprint.build(2, Key(2)).state_dict()
    for name, tensor in network.state_dict().items():
        if name.startswith("bert.") and "pooler" not in name:
            assert torch.equal(student[f"inner.{name}"], tensor)


def test_a_tokenizer_of_another_model_is_refused(bert: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(bert, tmp_path / "copy"))
    tokenizer(transformers, [*WORDS, "further"]).save_pretrained(folder)
    with pytest.raises(DataError, match="numbers up to 8, but the network knows 8 tokens"):
        open_member(folder)
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(DataError, match="holds no tokenizer"):
        open_member(folder)


def test_licence_and_base_model_come_from_its_page(copy: Path) -> None:
    (copy / "README.md").write_text("---\nlicense: apache-2.0\nbase_model:\n- some/base\n---\n# Title\n")
    about = open_member(copy).about
    assert (about.licence, about.base_model) == ("apache-2.0", "some/base")


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "much larger": ({"hidden_size": 80_000, "intermediate_size": 400_000}, "much larger than its weights"),
    "many layers": ({"num_hidden_layers": 900_000}, "much larger than its weights"),
    "absurdly many": ({"num_hidden_layers": 10**12}, "num_hidden_layers is 1000000000000, which no network has"),
    "many classes": ({"num_labels": 10**9, "id2label": None}, "num_labels is 1000000000"),
    "another head": ({"id2label": {str(n): f"c{n}" for n in range(7)}}, "'classifier.(weight|bias)' has the shape"),
    "gaps": ({"id2label": {"0": "a", "7": "b"}}, "does not number its classes from 0 on"),
    "no names": ({"id2label": [1, 2]}, "id2label is no mapping"),
    "remote code": (
        {"architectures": ["MyForImageClassification"], "auto_map": {"AutoModel": "evil.py"}},
        "brings code of its own, which is never run",
    ),
    "unknown type": ({"model_type": "nothing"}, "knows no networks of type 'nothing'"),
    "no class": ({"architectures": ["PreTrainedTokenizerForImageClassification"]}, "does not have"),
    "no architecture": ({"architectures": []}, "does not name its network"),
    "nonsense": ({"num_attention_heads": 0}, "its (network cannot be built|config cannot be read)"),
    "quantised": ({"quantization_config": {"bits": 4}}, "quantised weights"),
    "multi-label": ({"problem_type": "multi_label_classification"}, "does not choose one of several classes"),
    "channels": ({"num_channels": 10**9}, "much larger than its weights"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_configs(case: str, copy: Path) -> None:
    keys, sentence = HOSTILE[case]
    with pytest.raises(DataError, match=sentence):
        open_member(change(copy, **keys))


def test_remote_code_beside_a_plain_class_is_left_alone(copy: Path, images: Tensor) -> None:
    expected = said_by(open_member(copy), images)
    (copy / "evil.py").write_text("raise SystemExit('this code must not run')")
    change(copy, auto_map={"AutoModelForImageClassification": "evil.Net"}, attn_implementation="some/kernel")
    assert torch.equal(said_by(open_member(copy), images), expected)


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("../vit/model.safetensors", "leads out of"),
        ("/etc/hostname", "leads out of"),
        ("model-00009.safetensors", "lacks model-00009.safetensors, which model.safetensors.index.json names"),
        ("config.json", "which is of another format"),
        (7, "does not say where the weights lie"),
    ],
)
def test_hostile_indices(place: Any, sentence: str, copy: Path) -> None:
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"classifier.weight": place}}))
    with pytest.raises(DataError, match=sentence):
        open_member(copy)


def test_broken_weights(copy: Path, images: Tensor) -> None:
    whole = (copy / "model.safetensors").read_bytes()
    weights = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").write_bytes(whole[:-4])
    with pytest.raises(DataError, match="no whole safetensors file"):
        open_member(copy)
    (copy / "model.safetensors").write_bytes((10**15).to_bytes(8, "little") + whole[8:])
    with pytest.raises(DataError, match="no whole safetensors file"):
        open_member(copy)
    save_file({**weights, "classifier.bias": torch.full((3,), float("nan"))}, copy / "model.safetensors")
    with pytest.raises(DataError, match="not a finite number"):
        said_by(open_member(copy), images)
    save_file({name: tensor for name, tensor in weights.items() if "cls_token" not in name}, copy / "model.safetensors")
    with pytest.raises(DataError, match=r"holds nothing that fits 'vit.embeddings.cls_token'"):
        said_by(open_member(copy), images)
    (copy / "model.safetensors").unlink()
    (copy / "model.safetensors").mkdir()
    with pytest.raises(DataError, match="is no regular file"):
        open_member(copy)
    (copy / "model.safetensors").rmdir()
    with pytest.raises(DataError, match="holds no weights"):
        open_member(copy)
    (copy / "tf_model.h5").touch()
    with pytest.raises(DataError, match="holds weights of TensorFlow"):
        open_member(copy)


def test_broken_configs(copy: Path) -> None:
    for text, sentence in (("{", "is not JSON"), ("[]", "holds no mapping"), ("[" * 100_000, "is not JSON")):
        (copy / "config.json").write_text(text)
        with pytest.raises(DataError, match=sentence):
            open_member(copy)
