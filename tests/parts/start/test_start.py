"""How first weights come about, against what each promises."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.models import Mlp
from fedfuse.models.saved import save_model
from fedfuse.parts.base import CheckContext
from fedfuse.parts.fuse import Distiller
from fedfuse.parts.start import Contrast, Fresh, Labelled, Saved
from fedfuse.parts.start.contrastive import contrast
from fedfuse.runtime.optimizers import Sgd
from tests.helpers import CLASSES, FEATURES, TinyNorm, make_bank, make_evaluator, make_examples, make_source, make_view


def round_zero(bank, **more):
    return make_view(bank, round=0, key=Key(1), **more)


def test_fresh_depends_on_key_and_prototype_alone():
    bank = make_bank(a=Mlp(hidden=(5,)), b=Mlp(hidden=(5,)))
    view = round_zero(bank)
    assert Fresh().begin(view, "a").equals(Fresh().begin(view, "a"))
    assert not Fresh().begin(view, "a").equals(Fresh().begin(view, "b"))


def test_labelled_learns_the_public_labels():
    bank, source = make_bank(), make_source(200, labelled=True)
    start = Labelled(distiller=Distiller(epochs=100, batch_size=20, loss="hard", schedule="constant"))
    judge = make_evaluator(make_examples(300, seed=5))
    scores = [judge.score(bank.lend("mlp", s.begin(round_zero(bank, source=source), "mlp"))) for s in (Fresh(), start)]
    assert scores[1].accuracy > max(0.8, scores[0].accuracy)


def test_contrast_is_the_loss_of_simclr():
    projections, tau, n = torch.randn(8, 3), 0.5, 4

    def similarity(i, j):
        return torch.cosine_similarity(projections[i], projections[j], dim=0) / tau

    terms = []
    for i in range(2 * n):
        partner = (i + n) % (2 * n)
        others = torch.stack([similarity(i, j) for j in range(2 * n) if j != i])
        terms.append(others.logsumexp(0) - similarity(i, partner))
    torch.testing.assert_close(contrast(projections, tau), torch.stack(terms).mean())


@pytest.mark.parametrize("architecture", [Mlp(hidden=(8,)), TinyNorm(dropout=0.2)])
def test_contrast_makes_views_of_one_input_alike(architecture):
    bank, source = make_bank(net=architecture), make_source(60)
    start = Contrast(epochs=30, batch_size=30, noise=0.3)

    def loss(weights):
        model, random = bank.lend("net", weights).eval(), torch.Generator().manual_seed(0)
        views = [start.look(source, source.all_indices(), random) for _ in range(2)]
        with torch.no_grad():
            return float(contrast(model.features(torch.cat(views)), 0.5))

    view = round_zero(bank, source=source)
    trained = start.begin(view, "net")
    assert loss(trained) < loss(Fresh().begin(view, "net"))
    assert trained.equals(start.begin(view, "net"))


def test_contrast_leaves_the_classifier_alone():
    bank = make_bank()
    view = round_zero(bank, source=make_source(30))
    fresh, trained = Fresh().begin(view, "mlp"), Contrast(epochs=1, batch_size=10).begin(view, "mlp")
    assert torch.equal(fresh["classifier.weight"], trained["classifier.weight"])
    assert not torch.equal(fresh["layers.1.weight"], trained["layers.1.weight"])


class TestSaved:
    def saved(self, tmp_path, hidden=5):
        path = tmp_path / "model.safetensors"
        architecture = Mlp(hidden=(hidden,))
        weights = make_bank(mlp=architecture).initial("mlp", Key(42))
        save_model(path, architecture, (FEATURES,), CLASSES, weights)
        return path, weights

    def context(self, bank):
        return CheckContext(bank, Sgd(), has_validation=False)

    def test_goes_on_from_the_file(self, tmp_path):
        path, weights = self.saved(tmp_path)
        bank = make_bank()
        start = Saved(files={"mlp": path})
        start.check(self.context(bank))
        begun = start.begin(round_zero(bank), "mlp")
        assert torch.equal(begun.flat, weights.flat)
        assert isinstance(begun, Weights)

    def test_others_begin_at_random(self, tmp_path):
        path, _ = self.saved(tmp_path)
        bank = make_bank(mlp=Mlp(hidden=(5,)), other=Mlp(hidden=(7,)))
        view = round_zero(bank)
        assert Saved(files={"mlp": path}).begin(view, "other").equals(Fresh().begin(view, "other"))

    def test_refusals(self, tmp_path):
        path, _ = self.saved(tmp_path, hidden=6)
        with pytest.raises(ConfigError, match="another architecture than 'mlp'"):
            Saved(files={"mlp": path}).check(self.context(make_bank()))
        with pytest.raises(ConfigError, match=r"names 'net', but models has mlp"):
            Saved(files={"net": path}).check(self.context(make_bank()))
