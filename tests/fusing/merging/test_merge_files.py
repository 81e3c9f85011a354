"""Merges of files: the numbers of the parts, any type, any number of files, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from fedfuse.core.errors import ConfigError, DataError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Layout, Weights
from fedfuse.fusing.merging import file_stacks, merge_files
from fedfuse.parts.merge import Dare, Fisher, Mean, RegMean, Soup, TaskArithmetic, Ties, TrainedModels, piecewise

UNIFORM = Soup(form="uniform")
MERGES = [UNIFORM, TaskArithmetic(), Ties(), Ties(trim="tensor"), Dare(density=0.5, then=Ties(density=0.5)), Dare()]


def tensors(seed, dtype=torch.float32, sizes=((5, 4), (5,), (300,))):
    random = torch.Generator().manual_seed(seed)
    return {f"layer.{place}": torch.randn(size, generator=random).to(dtype) for place, size in enumerate(sizes)}


@pytest.fixture
def written(tmp_path):
    def write(name, content, files=1):
        """As one file, or as a folder of several with an index, as Hugging Face writes it."""
        if files == 1:
            save_file(content, tmp_path / f"{name}.safetensors")
            return tmp_path / f"{name}.safetensors"
        folder = tmp_path / name
        folder.mkdir()
        named = {
            tensor: f"model-{place % files + 1:05}-of-{files:05}.safetensors" for place, tensor in enumerate(content)
        }
        for file in set(named.values()):
            save_file({n: t for n, t in content.items() if named[n] == file}, folder / file, {"format": "pt"})
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": named}))
        return folder

    return write


@pytest.fixture
def three(written):
    base = tensors(0)
    models = [{n: t + 0.1 * tensors(seed)[n] for n, t in base.items()} for seed in (1, 2, 3)]
    return written("base", base), [written(f"m{place}", model) for place, model in enumerate(models)]


def weights_of(path):
    content = load_file(path)
    layout = Layout(tuple((name, tuple(content[name].shape)) for name in sorted(content)), ())
    return Weights(torch.cat([content[name].reshape(-1) for name in sorted(content)]), layout)


@pytest.mark.parametrize("merge", MERGES, ids=lambda merge: merge.kind)
@pytest.mark.parametrize("piece", [7, 1 << 20])
def test_gives_the_bits_of_the_part(three, tmp_path, merge, piece, monkeypatch):
    monkeypatch.setattr(piecewise, "PIECE", piece)
    monkeypatch.setattr(file_stacks, "PIECE", piece)
    base, models = three
    merge_files(models, tmp_path / "out.safetensors", merge, base=base, seed=9)
    names = [str(place) for place in range(3)]
    held = [weights_of(model) for model in models]
    material = TrainedModels(held, weights_of(base), [1 / 3] * 3, names, Key(9).child("merge"), None, None, None)
    assert weights_of(tmp_path / "out.safetensors").equals(merge.combine(material))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_computes_in_double_precision_and_rounds_once(written, tmp_path, dtype):
    models = [tensors(seed, dtype) for seed in (1, 2, 3)]
    paths = [written(f"m{place}", model) for place, model in enumerate(models)]
    merge_files(paths, tmp_path / "out.safetensors", UNIFORM)
    merged = load_file(tmp_path / "out.safetensors")
    for name, tensor in merged.items():
        exact = np.mean([model[name].double().numpy() for model in models], axis=0)
        assert tensor.dtype == dtype
        assert torch.equal(tensor, torch.from_numpy(exact).to(dtype)) or dtype == torch.float64
        np.testing.assert_allclose(tensor.double().numpy(), exact, rtol=1e-2 if dtype == torch.bfloat16 else 1e-3)


def test_models_count_by_their_examples(three, tmp_path):
    _, models = three
    merge_files(models, tmp_path / "out.safetensors", Soup(form="uniform", weighting="examples"), examples=[1, 2, 7])
    expected = np.average([weights_of(model).flat.double().numpy() for model in models], axis=0, weights=[1, 2, 7])
    np.testing.assert_allclose(weights_of(tmp_path / "out.safetensors").flat.numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("files", [1, 2, 3])
def test_several_files_are_one_model(three, written, tmp_path, files):
    base, models = three
    folders = [written(f"folder{place}", load_file(model), files) for place, model in enumerate(models)]
    merge_files(models, tmp_path / "one.safetensors", Ties(), base=base)
    result = merge_files(folders, tmp_path / "many", Ties(), base=base, shard_bytes=400)
    index = json.loads((tmp_path / "many" / "model.safetensors.index.json").read_text())
    assert {*index["weight_map"].values(), "model.safetensors.index.json"} == set(result.files)
    assert len(result.files) > 2
    assert sorted(p.name for p in (tmp_path / "many").iterdir()) == sorted(result.files)
    one = load_file(tmp_path / "one.safetensors")
    for name, file in index["weight_map"].items():
        with safe_open(tmp_path / "many" / file, "pt") as opened:
            assert opened.metadata() == {"format": "pt"}
            assert torch.equal(opened.get_tensor(name), one[name])
    merge_files([tmp_path / "many"], tmp_path / "again", UNIFORM)
    assert {n: t.tolist() for n, t in load_file(tmp_path / "again" / "model.safetensors").items()} == {
        n: t.tolist() for n, t in one.items()
    }


def test_statistics_are_averaged_and_counters_are_the_first_ones(written, tmp_path):
    def norm(value, counter):
        return {
            "bn.weight": torch.tensor([value]),
            "bn.running_var": torch.tensor([value]),
            "bn.num_batches_tracked": torch.tensor(counter),
            "positions": torch.arange(3),
            "empty": torch.zeros(0),
        }

    base = written("base", norm(1.0, 0))
    models = [written("a", norm(2.0, 5)), written("b", norm(4.0, 6))]
    merge_files(models, tmp_path / "out.safetensors", TaskArithmetic(scale=2.0), base=base)
    merged = load_file(tmp_path / "out.safetensors")
    assert merged["bn.weight"].item() == 1.0 + 2 * (1.0 + 3.0)
    assert merged["bn.running_var"].item() == 3.0
    assert merged["bn.num_batches_tracked"].item() == 5
    assert merged["positions"].tolist() == [0, 1, 2]
    assert merged["empty"].shape == (0,)


class TestMemory:
    def test_no_more_than_a_piece_of_each_model_is_there(self, written, tmp_path, monkeypatch):
        monkeypatch.setattr(piecewise, "PIECE", 1 << 12)
        monkeypatch.setattr(file_stacks, "PIECE", 1 << 12)
        paths = [written(f"m{seed}", tensors(seed, sizes=((300, 200), (100_000,)))) for seed in range(4)]
        sizes = []
        read = file_stacks.Checkpoint.read
        monkeypatch.setattr(file_stacks.Checkpoint, "read", lambda *arguments: _kept(sizes, read(*arguments)))
        tracemalloc.start()
        merge_files(paths[1:], tmp_path / "out.safetensors", Ties(), base=paths[0])
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert max(sizes) == 1 << 12
        assert peak < 1 << 20, "Python's own memory, torch's is counted by the pieces"

    @pytest.mark.long
    def test_a_model_larger_than_what_the_process_may_have(self, tmp_path):
        """Three files of 160 MB, merged by a process that may not have 120 MB more than torch itself needs."""
        for seed in range(3):
            save_file(tensors(seed, sizes=((40_000_000,),)), tmp_path / f"{seed}.safetensors")
        done = subprocess.run(
            [sys.executable, "-c", LARGE, str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr
        assert int(done.stdout) < 120 * 2**10


LARGE = """
import resource, sys, torch
from fedfuse.fusing.merging import merge_files
from fedfuse.parts.merge import Ties
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
folder = sys.argv[1]
base, *models = (f"{folder}/{seed}.safetensors" for seed in range(3))
merge_files(models, f"{folder}/out", Ties(), base=base)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def _kept(sizes, numbers):
    sizes.append(len(numbers))
    return numbers


class TestInterruptions:
    @pytest.fixture
    def killed(self, three, tmp_path, monkeypatch):
        """A merge into files of one tensor each that dies when the second is begun."""
        base, models = three
        write = merge_files.__globals__["write_pieces"]

        def die(path, **more):
            if "00002" in path.name:
                (path.parent / ".model-00002.1.tmp").write_bytes(b"half")
                raise KeyboardInterrupt
            write(path, **more)

        with monkeypatch.context() as patch:
            patch.setitem(merge_files.__globals__, "write_pieces", die)
            with pytest.raises(KeyboardInterrupt):
                merge_files(models, tmp_path / "out", Ties(), base=base, shard_bytes=1)
        assert not (tmp_path / "out").exists()
        return base, models, tmp_path / ".out.merging" / "result"

    def again(self, killed, tmp_path, monkeypatch, **more):
        """What is written when it is started again, and whether the result is that of one that was left in peace."""
        base, models, _ = killed
        write, written = merge_files.__globals__["write_pieces"], []

        def watch(path, **settings):
            written.append(path.name[6:11])
            write(path, **settings)

        with monkeypatch.context() as patch:
            patch.setitem(merge_files.__globals__, "write_pieces", watch)
            result = merge_files(models, tmp_path / "out", Ties(), base=base, **{"shard_bytes": 1, **more})
        straight = merge_files(models, tmp_path / "straight", Ties(), base=base, **{"shard_bytes": 1, **more})
        assert result.files == straight.files
        assert {p.name: p.read_bytes() for p in (tmp_path / "out").iterdir()} == {
            p.name: p.read_bytes() for p in (tmp_path / "straight").iterdir()
        }
        assert not (tmp_path / ".out.merging").exists()
        return written

    def test_what_is_finished_is_kept(self, killed, tmp_path, monkeypatch):
        assert self.again(killed, tmp_path, monkeypatch) == ["00002", "00003"]

    def test_a_damaged_file_is_written_anew(self, killed, tmp_path, monkeypatch):
        (first,) = [path for path in killed[2].iterdir() if "00001" in path.name]
        content = bytearray(first.read_bytes())
        content[-1] ^= 1
        first.write_bytes(content)
        assert self.again(killed, tmp_path, monkeypatch) == ["00001", "00002", "00003"]

    def test_other_inputs_begin_anew(self, killed, tmp_path, monkeypatch):
        model = killed[1][0]
        content = load_file(model)
        save_file({name: tensor + 1 for name, tensor in content.items()}, model)
        assert self.again(killed, tmp_path, monkeypatch) == ["00001", "00002", "00003"]

    def test_other_settings_begin_anew(self, killed, tmp_path, monkeypatch):
        assert self.again(killed, tmp_path, monkeypatch, seed=1) == ["00001", "00002", "00003"]

    def test_other_files_begin_anew(self, killed, tmp_path, monkeypatch):
        assert len(self.again(killed, tmp_path, monkeypatch, shard_bytes=10**6)) == 1

    @pytest.mark.parametrize("journal", ["", "[]", '{"identity": 3}', '{"identity": "x", "files": []}'])
    def test_a_journal_that_says_nothing_begins_anew(self, killed, tmp_path, monkeypatch, journal):
        (tmp_path / ".out.merging" / "journal.json").write_text(journal)
        assert self.again(killed, tmp_path, monkeypatch) == ["00001", "00002", "00003"]


class TestRefusals:
    def refused(self, error, match, models, merge=UNIFORM, **more):
        out = Path(models[0]).parent / "out.safetensors" if models else "out.safetensors"
        with pytest.raises(error, match=match) as caught:
            merge_files(models, out, merge, **more)
        assert "\n" not in str(caught.value)
        assert not Path(out).exists()

    @pytest.mark.parametrize("merge", [Soup(), Fisher(), RegMean(), Mean()], ids=lambda merge: merge.kind)
    def test_merges_that_need_more_than_files(self, three, merge):
        self.refused(ConfigError, f"merge {merge.kind} asks for more than files", three[1], merge)

    def test_no_models(self):
        self.refused(ConfigError, "no models", [])

    @pytest.mark.parametrize("merge", [TaskArithmetic(), Ties(), Dare()], ids=lambda merge: merge.kind)
    def test_no_base(self, three, merge):
        self.refused(ConfigError, "say which is the base", three[1], merge)

    def test_no_examples(self, three):
        self.refused(ConfigError, "say how many", three[1], Soup(form="uniform", weighting="examples"))
        self.refused(ConfigError, "as many positive", three[1], UNIFORM, examples=[1, 2])
        self.refused(ConfigError, "as many positive", three[1], UNIFORM, examples=[1, 2, 0])

    def test_another_shape(self, three, written):
        other = written("other", tensors(0, sizes=((5, 4), (6,), (300,))))
        self.refused(
            DataError, r"other\.safetensors: 'layer\.1' is F32 \[6\], but F32 \[5\] in .*m0", [three[1][0], other]
        )

    def test_another_type(self, three, written):
        other = written("other", tensors(0, torch.float16))
        self.refused(DataError, r"other\.safetensors: 'layer\.\d' is F16 .* but F32", [three[1][0], other])

    def test_other_names(self, three, written):
        less, more = tensors(0), {**tensors(0), "more": torch.zeros(1)}
        del less["layer.1"]
        self.refused(DataError, "has no tensor 'layer.1', which", [three[1][0], written("less", less)])
        self.refused(DataError, "has a tensor 'more', which", [three[1][0], written("more", more)])

    def test_another_base(self, three, written):
        base = written("other", tensors(0, sizes=((5, 4),)))
        self.refused(DataError, "other.safetensors has no tensor", three[1], Ties(), base=base)

    @pytest.mark.parametrize("number", [float("nan"), float("inf")])
    def test_numbers_that_are_not_finite(self, three, written, number):
        content = tensors(0)
        content["layer.2"][17] = number
        other = written("other", content)
        self.refused(DataError, r"other\.safetensors: 'layer\.2' has numbers that are not finite", [three[1][0], other])

    def test_a_sum_that_the_type_cannot_hold(self, written):
        base, model = written("base", {"w": torch.zeros(2).half()}), written("m", {"w": torch.full((2,), 6e4).half()})
        self.refused(DataError, "too large for F16", [model] * 2, TaskArithmetic(scale=1.0), base=base)

    def test_whole_numbers_that_differ(self, written):
        models = [written(name, {"positions": torch.arange(3) + place}) for place, name in enumerate("ab")]
        self.refused(DataError, "b.safetensors: 'positions' has other whole numbers", models)

    def test_complex_numbers(self, written):
        self.refused(DataError, "complex", [written("a", {"w": torch.zeros(2, dtype=torch.complex64)})])

    def test_a_place_that_is_taken(self, three, tmp_path):
        (tmp_path / "out").mkdir()
        with pytest.raises(DataError, match="is there already"):
            merge_files(three[1], tmp_path / "out", UNIFORM)

    def test_a_place_that_cannot_be_written(self, three, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(DataError, match="cannot be written"):
            merge_files(three[1], tmp_path / "file" / "out", UNIFORM)

    def test_a_place_that_somebody_else_writes(self, three, tmp_path):
        from fedfuse.fusing.merging.workplace import working

        with working(tmp_path / "out", "x"), pytest.raises(DataError, match="another process is writing"):
            merge_files(three[1], tmp_path / "out", UNIFORM)


class TestHostileFiles:
    def refused(self, path, match):
        with pytest.raises(DataError, match=match) as caught:
            merge_files([path], path.parent / "out.safetensors", UNIFORM)
        assert "\n" not in str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path):
        self.refused(tmp_path / "no.safetensors", "cannot be read: No such file")

    def test_a_folder_without_a_model(self, tmp_path):
        self.refused(tmp_path, "holds neither model.safetensors nor")

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"text",
            b"\xff" * 8,
            (2**40).to_bytes(8, "little") + b"{}",
            (2).to_bytes(8, "little") + b"[]",
            (61).to_bytes(8, "little") + b'{"w":{"dtype":"F32","shape":[9],"data_offsets":[0,4000000]}}',
            b"\x80\x02}q\x00.",
        ],
    )
    def test_what_is_no_safetensors(self, tmp_path, content):
        path = tmp_path / "bad.safetensors"
        path.write_bytes(content)
        self.refused(path, "is no safetensors file, or a damaged one")

    def test_nothing_in_it(self, tmp_path):
        save_file({}, tmp_path / "empty.safetensors")
        self.refused(tmp_path / "empty.safetensors", "holds no tensors")

    def test_names_that_cannot_be_written(self, tmp_path):
        text = rb'{"\ud800":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
        path = tmp_path / "bad.safetensors"
        path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4))
        self.refused(path, "names of tensors that cannot be written")

    @pytest.mark.parametrize(
        ("index", "match"),
        [
            ("[", "no index"),
            ("{}", "no index"),
            ('{"weight_map": []}', "no index"),
            ('{"weight_map": {}}', "names no tensors"),
            ('{"weight_map": {"w": "../other.safetensors"}}', "beside it"),
            ('{"weight_map": {"w": "/etc/passwd"}}', "beside it"),
            ('{"weight_map": {"w": "model.bin"}}', "beside it"),
            ('{"weight_map": {"w": 3}}', "beside it"),
            ('{"weight_map": {"w": "missing.safetensors"}}', "No such file"),
            ('{"weight_map": {"v": "there.safetensors"}}', "does not hold it"),
        ],
    )
    def test_an_index_that_leads_nowhere(self, tmp_path, index, match):
        save_file({"w": torch.zeros(1)}, tmp_path / "there.safetensors")
        (tmp_path / "model.safetensors.index.json").write_text(index)
        self.refused(tmp_path, match)
