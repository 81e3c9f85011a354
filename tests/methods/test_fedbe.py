"""FedBE as a whole: its limit is FedDF, and its target is what the paper writes."""

from __future__ import annotations

import torch

from fedfuse.core.randomness import Key
from fedfuse.experiment import Experiment
from fedfuse.fusion import EnsembleDistillation
from fedfuse.fusion.distiller import Distiller
from fedfuse.methods import METHODS
from tests.helpers import (
    files_of,
    make_bank,
    make_source,
    make_update,
    make_view,
    make_weights,
    tiny_config,
    tiny_method,
)


def final(method, folder):
    return files_of(Experiment(tiny_config(method)).run(folder).folder.final)


def test_clients_only_without_sharpening_on_mean_logits_is_feddf(tmp_path, without_pictures):  # noqa: ARG001
    feddf = tiny_method("feddf")
    plain = {"teachers": [{"kind": "clients"}], "target": "mean_logits", "sharpening": 1.0, "views": "fixed"}
    fedbe = tiny_method(
        "fedbe", fuse={**tiny_method("fedbe")["fuse"], **plain, "distiller": feddf["fuse"]["distiller"]}
    )
    assert final(fedbe, tmp_path / "fedbe") == final(feddf, tmp_path / "feddf")
    assert final("fedbe", tmp_path / "as published") != final(feddf, tmp_path / "feddf again")


def test_lessons_are_sharpened_mean_probabilities_over_average_clients_and_samples():
    bank, source = make_bank(), make_source(12)
    updates = [make_update(make_weights(bank, "mlp", s), client=s, examples=10 * (s + 1)) for s in range(3)]
    merged = {"mlp": make_weights(bank, "mlp", 50)}
    view = make_view(bank, {"mlp": make_weights(bank, "mlp", 60)}, source=source, key=Key(3))
    fuse = METHODS["fedbe"].recipe.fuse
    assert isinstance(fuse, EnsembleDistillation)
    fuse = fuse.model_copy(update={"views": "fixed", "distiller": Distiller(steps=1, batch_size=12)})
    ensemble = fuse._ensemble(view, merged, updates)
    assert len(ensemble.teachers) == 1 + 3 + 10
    ((inputs, target),) = [lesson() for lesson in fuse._lessons(view, source, ensemble)]
    with torch.no_grad():
        answers = [bank.lend("mlp", t.weights).eval()(inputs).softmax(1) for t in ensemble.teachers]
    mean = torch.stack(answers).mean(0)
    torch.testing.assert_close(target.exp(), mean**2 / (mean**2).sum(1, keepdim=True), rtol=1e-4, atol=1e-6)


def test_one_ensemble_reports_the_ensemble_and_returns_the_average(tmp_path, without_pictures):  # noqa: ARG001
    result = Experiment(tiny_config("1-ensemble")).run(tmp_path / "one")
    fedavg = Experiment(tiny_config("fedavg")).run(tmp_path / "avg")
    assert files_of(result.folder.final) == files_of(fedavg.folder.final)
    assert result.history[-1].ensemble_accuracy is not None
