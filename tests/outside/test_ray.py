"""A method from outside on Ray: its workers find it, and the bits are the same."""

from __future__ import annotations

import pytest

from fedfuse.experiment.run import Experiment
from tests.helpers import files_of
from tests.outside.parts import FEDDF, TINY

ray = pytest.importorskip("ray", reason="needs Ray: make test-engines installs it")
pytestmark = pytest.mark.usefixtures("without_pictures", "here")


@pytest.fixture
def running(here):  # noqa: ARG001 - Ray's processes work in the folder where it is started
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("running")
def test_parts_from_outside_give_the_same_bits_on_ray(tmp_path):
    scored = {**FEDDF, "scores": {"kind": "my_scores:Sure"}, "upload": [{"kind": "my_upload:EightBits"}]}
    for name, method in {"feddyn": "my_methods:FEDDYN", "feddf": scored}.items():
        expected = Experiment({**TINY, "method": method}).run(tmp_path / name)
        on_ray = Experiment({**TINY, "method": method, "engine": {"kind": "ray"}}).run(tmp_path / f"{name}-ray")
        assert files_of(on_ray.folder.final) == files_of(expected.folder.final)
