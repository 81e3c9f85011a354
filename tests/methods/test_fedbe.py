"""FedBE as a whole: its limit is FedDF, and its target is what the paper writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
import yaml

from fedfuse.core.randomness import Key
from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from fedfuse.parts.fuse import EnsembleDistillation, GaussianTeachers
from fedfuse.parts.fuse.distiller import Distiller
from fedfuse.parts.local import TrainingSettings
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
    ((inputs, target),) = [batch() for batch in fuse._batches(view, source, ensemble)]
    with torch.no_grad():
        answers = [bank.lend("mlp", t.weights).eval()(inputs).softmax(1) for t in ensemble.teachers]
    mean = torch.stack(answers).mean(0)
    torch.testing.assert_close(target.exp(), mean**2 / (mean**2).sum(1, keepdim=True), rtol=1e-4, atol=1e-6)


def test_one_ensemble_reports_the_ensemble_and_returns_the_average(tmp_path, without_pictures):  # noqa: ARG001
    result = Experiment(tiny_config("1-ensemble")).run(tmp_path / "one")
    fedavg = Experiment(tiny_config("fedavg")).run(tmp_path / "avg")
    assert files_of(result.folder.final) == files_of(fedavg.folder.final)
    assert result.history[-1].ensemble_accuracy is not None


def test_as_coded_differs_from_the_paper_in_exactly_these():
    printed, coded = (METHODS[name].recipe.fuse for name in ("fedbe", "fedbe-as-coded"))
    assert isinstance(printed, EnsembleDistillation)
    assert isinstance(coded, EnsembleDistillation)
    assert METHODS["fedbe"].recipe.model_dump(exclude={"fuse"}) == METHODS["fedbe-as-coded"].recipe.model_dump(
        exclude={"fuse"}
    )
    assert coded.teachers == (*printed.teachers[:2], GaussianTeachers(number=10, form="as_coded"))
    assert coded.model_dump(exclude={"teachers", "distiller"}) == printed.model_dump(exclude={"teachers", "distiller"})
    optimizer = printed.distiller.optimizer.model_copy(update={"weight_decay": 1e-5})
    assert printed.distiller.swa is not None
    swa = printed.distiller.swa.model_copy(update={"collect_after": 500, "lowest": 1.0})
    changes = {"optimizer": optimizer, "swa": swa, "loss": "kl_elementwise"}
    assert coded.distiller == printed.distiller.model_copy(update=changes)


def test_as_coded_lowers_no_rate_and_collects_43_students_of_the_papers_1580_steps():
    fuse = METHODS["fedbe-as-coded"].recipe.fuse
    assert isinstance(fuse, EnsembleDistillation)
    assert fuse.distiller.swa is not None
    assert fuse.distiller.budget(10_000) == 1580
    assert {fuse.distiller.swa.rate_fraction(step) for step in range(1580)} == {1.0}
    assert sum(fuse.distiller.swa.collects(step) for step in range(1, 1581)) == 43


@pytest.mark.parametrize("rounds", [40, 100])
def test_the_documented_rates_of_the_released_code(rounds):
    """As its function of the round, which counts from 0: .5, then 1, .2 above 30 %, .1 above 60 %, .01 above 90 %."""
    text = (Path(__file__).parents[2] / "docs" / "methods" / "fedbe.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    (training,) = (block["training"] for block in blocks if "training" in block)
    settings = TrainingSettings.model_validate(training)

    def coded(number):
        if number == 0:
            return 0.005
        shares = ((0.9, 0.0001), (0.6, 0.001), (0.3, 0.002))
        return next((rate for share, rate in shares if number > share * rounds), 0.01)

    expected = [coded(number) for number in range(rounds)]
    assert [settings.rate(number + 1, rounds) for number in range(rounds)] == pytest.approx(expected)
