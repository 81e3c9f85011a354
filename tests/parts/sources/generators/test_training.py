"""A trained generator makes recognisable inputs, the same ones for the same seed, interrupted or not."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from fedfuse.core.errors import ConfigError, DataError, RunFolderError
from fedfuse.core.randomness import Key
from fedfuse.core.tensor_files import write_safetensors
from fedfuse.data import DataSettings, Examples, load
from fedfuse.parts.sources.generators import GeneratorTraining, VaeSettings, load_generator, train_generator
from tests.helpers import make_examples

TINY = GeneratorTraining(network=VaeSettings(latent=2, hidden=5, channels=2), epochs=4, batch_size=8)


def tiny_images(side=8, count=20):
    random = torch.Generator().manual_seed(3)
    pixels = torch.randint(0, 256, (count, 1, side, side), dtype=torch.uint8, generator=random)
    return Examples(pixels, torch.arange(count) % 2)


class StopError(Exception):
    """Stands in for Ctrl-C."""


def stop_after(epoch):
    def progress(finished, _loss):
        if finished == epoch:
            raise StopError

    return progress


@pytest.mark.parametrize("picked", ["digits", "blobs"])
def test_samples_are_recognised_as_their_class(picked):
    dataset = load(DataSettings(name=picked), Key(0))
    scale = 255 if picked == "digits" else 1
    judge = LogisticRegression(max_iter=300).fit(
        dataset.train.inputs.flatten(1).numpy() / scale, dataset.train.labels.numpy()
    )
    generator = train_generator(dataset.train, dataset.classes, GeneratorTraining(epochs=15))
    labels = torch.arange(dataset.classes).repeat_interleave(40)
    made = generator(len(labels), Key(1).torch(), labels)
    assert (judge.predict(made.flatten(1).numpy()) == labels.numpy()).mean() > 0.8
    if picked == "digits":
        assert made.flatten(1)[labels == 3].std(dim=0).mean() > 0.02, "samples of a class differ from each other"


@pytest.mark.parametrize("examples", [tiny_images(), tiny_images(side=12), make_examples(20)], ids=["8", "12", "4"])
def test_interrupted_anywhere_or_not_the_file_is_the_same(tmp_path, examples):
    classes = int(examples.labels.max()) + 1
    whole, pieces = tmp_path / "whole.safetensors", tmp_path / "pieces.safetensors"
    train_generator(examples, classes, TINY, whole)
    for epoch in (1, 3):
        with pytest.raises(StopError):
            train_generator(examples, classes, TINY, pieces, progress=stop_after(epoch))
        assert not pieces.exists()
    went_on = []
    train_generator(examples, classes, TINY, pieces, progress=lambda epoch, _: went_on.append(epoch))
    assert went_on == [4]
    assert pieces.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pieces.safetensors", "whole.safetensors"]


def test_the_seed_decides(tmp_path):
    files = [tmp_path / name for name in ("one", "same", "other")]
    for file, seed in zip(files, (1, 1, 2), strict=True):
        train_generator(tiny_images(), 2, TINY.model_copy(update={"seed": seed}), file)
    one, same, other = (load_generator(file).decoder.state_dict() for file in files)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not all(torch.equal(one[name], other[name]) for name in same)


def test_training_lowers_the_loss():
    losses = []
    settings = TINY.model_copy(update={"epochs": 30, "learning_rate": 1e-2})
    train_generator(tiny_images(), 2, settings, progress=lambda _, loss: losses.append(loss))
    assert losses[-1] < losses[0]


def test_a_constant_feature_is_made_as_it_is():
    inputs = torch.cat([torch.randn(20, 1), torch.full((20, 1), 7.0)], dim=1)
    made = train_generator(Examples(inputs, torch.zeros(20, dtype=torch.long)), 1, TINY)(9, Key(0).torch())
    assert torch.equal(made[:, 1], torch.full((9,), 7.0))
    assert bool(made.isfinite().all())


class TestRefusals:
    def test_a_file_that_is_there_is_kept_unless_told_otherwise(self, tmp_path):
        path = tmp_path / "g.safetensors"
        path.write_bytes(b"precious")
        with pytest.raises(RunFolderError, match="already there; add overwrite=True"):
            train_generator(tiny_images(), 2, TINY, path)
        assert path.read_bytes() == b"precious"
        train_generator(tiny_images(), 2, TINY, path, overwrite=True)
        assert load_generator(path).card.classes == 2

    @pytest.mark.parametrize("change", ["settings", "data"])
    def test_a_partial_file_of_another_training(self, tmp_path, change):
        path = tmp_path / "g.safetensors"
        with pytest.raises(StopError):
            train_generator(tiny_images(), 2, TINY, path, progress=stop_after(1))
        settings = TINY.model_copy(update={"seed": 9}) if change == "settings" else TINY
        examples = tiny_images() if change == "settings" else make_examples(20)
        with pytest.raises(RunFolderError, match=r"g\.safetensors\.partial is left from a training with other"):
            train_generator(examples, 3, settings, path)
        train_generator(examples, 3, settings, path, overwrite=True)
        fresh = tmp_path / "fresh.safetensors"
        train_generator(examples, 3, settings, fresh)
        assert path.read_bytes() == fresh.read_bytes()

    @pytest.mark.parametrize("content", [b"", b"half a header", None])
    def test_a_damaged_partial_file(self, tmp_path, content):
        partial = tmp_path / "g.safetensors.partial"
        if content is None:
            write_safetensors(partial, {"a": torch.ones(1)}, {"something": "else"})
        else:
            partial.write_bytes(content)
        with pytest.raises(RunFolderError, match="remove the file"):
            train_generator(tiny_images(), 2, TINY, tmp_path / "g.safetensors")

    def test_a_folder_is_no_file(self, tmp_path):
        with pytest.raises(RunFolderError, match="is a folder"):
            train_generator(tiny_images(), 2, TINY, tmp_path, overwrite=True)

    def test_a_label_without_a_class(self):
        with pytest.raises(DataError, match="label 1 is out of range; 1 classes are"):
            train_generator(tiny_images(), 1, TINY)

    def test_too_few_examples(self):
        with pytest.raises(DataError, match="has 1 example"):
            train_generator(tiny_images(count=1), 2, TINY)

    def test_a_loss_that_is_lost(self):
        settings = TINY.model_copy(update={"learning_rate": 1e6, "epochs": 20})
        with pytest.raises(ConfigError, match="lower its learning rate"):
            train_generator(tiny_images(), 2, settings)
