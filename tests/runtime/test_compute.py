"""Threads are given back, layouts change no value, and bf16 stays close."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.experiment.run import Experiment
from fedfuse.models import Mlp, create
from fedfuse.runtime.compute import Compute, ComputeSettings
from fedfuse.runtime.processor import multiplies_bf16
from tests.helpers import files_of, tiny_config


@pytest.mark.parametrize("fails", [False, True])
def test_threads_are_given_back(fails):
    before = torch.get_num_threads()
    compute = Compute(torch.device("cpu"), threads=before + 1, channels_last=False)
    try:
        with compute.at_work():
            assert torch.get_num_threads() == before + 1
            if fails:
                raise RuntimeError
    except RuntimeError:
        pass
    assert torch.get_num_threads() == before


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without cuda")
def test_a_missing_device_is_named():
    with pytest.raises(ConfigError, match=r"compute\.device is 'cuda'"):
        Compute.of(ComputeSettings(device="cuda", channels_last=False, stack=False))


def test_channels_last_changes_the_storage_and_not_the_values():
    compute = Compute(torch.device("cpu"), 1, channels_last=True)
    images = torch.randn(2, 3, 4, 4)
    assert compute.inputs(images).is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(compute.inputs(images), images)
    assert torch.equal(compute.inputs(images[:, 0, 0]), images[:, 0, 0])
    tokens = torch.arange(6).view(2, 3)
    assert compute.inputs(tokens).is_contiguous()
    assert torch.equal(compute.inputs(tokens), tokens)


class TestBf16:
    FULL, HALF = (
        Compute.of(ComputeSettings(device="cpu", channels_last=False, stack=False, precision=precision))
        for precision in ("float32", "bf16")
    )

    @pytest.mark.parametrize("architecture", [Mlp(hidden=(32,)), Mlp(hidden=(32,), projection_head=4)])
    def test_features_are_close_and_last_layers_exact(self, architecture):
        x = torch.randn(6, 10, generator=Key(1).torch())
        exact, half = (compute.place(create(architecture, (10,), 3, Key(0))) for compute in (self.FULL, self.HALF))
        features = half.features(x)
        assert features.dtype == half(x).dtype == torch.float32
        assert not torch.equal(features, exact.features(x))
        assert torch.allclose(features, exact.features(x), atol=0.05)
        assert torch.equal(half(x), half.classifier(features))
        assert torch.equal(half(x), half(x))

    def test_a_copy_computes_with_its_own_weights(self):
        model = self.HALF.place(create(Mlp(), (10,), 3, Key(0)))
        twin = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in twin.parameters():
                parameter.zero_()
        x = torch.ones(1, 10)
        assert twin.features(x).eq(0).all()
        assert model.features(x).ne(0).any()

    @pytest.mark.parametrize("flags", ["flags : fpu avx512_bf16", "Features : fp asimd bf16", "flags : fpu avx2", ""])
    def test_who_has_no_units_for_it_is_told(self, flags, monkeypatch):
        monkeypatch.setattr(Path, "read_text", lambda *_, **__: flags)
        multiplies_bf16.cache_clear()
        try:
            slow = flags.endswith("avx2")
            assert (self.HALF.caution is not None) is slow
            assert self.FULL.caution is None
        finally:
            multiplies_bf16.cache_clear()

    def test_gradients_and_weights_are_float32(self):
        model = self.HALF.place(create(Mlp(), (10,), 3, Key(0)))
        model(torch.ones(2, 10)).sum().backward()
        assert {p.grad.dtype for p in model.parameters()} == {p.dtype for p in model.parameters()} == {torch.float32}


@pytest.mark.usefixtures("without_pictures")
@pytest.mark.parametrize("method", ["fedavg", "feddf", "fedgkd"])
def test_a_run_in_bf16_is_repeatable_and_close(tmp_path, method):
    def finished(name, **compute):
        return Experiment(tiny_config(method, compute={"device": "cpu", **compute})).run(tmp_path / name)

    exact, one, other = finished("exact"), finished("one", precision="bf16"), finished("other", precision="bf16")
    assert files_of(one.folder.final) == files_of(other.folder.final)
    assert files_of(one.folder.final) != files_of(exact.folder.final)
    (name,) = exact.accuracy
    near, far = (Weights.of(run.model(name)).flat for run in (one, exact))
    assert (near - far).norm() < 0.05 * far.norm()
