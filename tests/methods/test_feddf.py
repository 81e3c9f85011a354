"""FedDF as a whole: what the released code does otherwise, and teachers from SWAG."""

from __future__ import annotations

from fedfuse.experiment.run import Experiment
from fedfuse.methods import METHODS
from fedfuse.parts.fuse import EnsembleDistillation
from tests.helpers import files_of, tiny_config, tiny_method


def final(method, folder):
    return files_of(Experiment(tiny_config(method)).run(folder).folder.final)


def test_as_coded_differs_from_the_paper_in_exactly_these():
    printed, coded = METHODS["feddf"].recipe, METHODS["feddf-as-coded"].recipe
    assert isinstance(printed.fuse, EnsembleDistillation)
    distiller = printed.fuse.distiller.model_copy(update={"batch_size": 64, "clip_norm": 5.0})
    fuse = printed.fuse.model_copy(update={"views": "augmented", "absent": "keep", "distiller": distiller})
    merge = printed.merge.model_copy(update={"weighting": "uniform"})
    assert coded == printed.model_copy(update={"merge": merge, "fuse": fuse})


def test_as_coded_with_the_papers_settings_is_feddf(tmp_path, without_pictures):  # noqa: ARG001
    printed = tiny_method("feddf")
    back = tiny_method("feddf-as-coded", merge=printed["merge"], fuse=printed["fuse"])
    assert final(back, tmp_path / "back") == final(printed, tmp_path / "printed")
    assert final("feddf-as-coded", tmp_path / "coded") != final(printed, tmp_path / "printed again")


def test_swag_teachers_in_a_whole_run(tmp_path, without_pictures):  # noqa: ARG001
    fuse = tiny_method("feddf")["fuse"]
    swag = tiny_method("feddf", fuse={**fuse, "teachers": [{"kind": "swag", "number": 3}, {"kind": "clients"}]})
    one, again = final(swag, tmp_path / "one"), final(swag, tmp_path / "again")
    assert one == again
    assert one != final("feddf", tmp_path / "clients only")
