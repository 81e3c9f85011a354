"""Trained models into one student: better than any of them, the same bytes after a kill, and nobody is harmed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import fedfuse
from fedfuse.core.errors import ConfigError, DataError, FedfuseError, RunFolderError
from fedfuse.core.randomness import Key
from fedfuse.core.weights import Weights
from fedfuse.federation import shelf
from fedfuse.fusing import merged, teaching
from fedfuse.fusing.api import FuseCall
from fedfuse.models import Mlp, create
from fedfuse.models.saved import load_model, save_model
from tests.fusing.conftest import WORDS, Digits

STEPS = {"steps": 150, "threads": 1}


def accuracy(model, digits: Digits) -> float:
    images, labels = digits.test
    return float((model.predict_proba(images).argmax(axis=1) == labels.numpy()).mean())


def fused(models, digits, out, **options):
    return fedfuse.fuse(models, inputs=digits.public, out=out, **{**STEPS, **options})


class TestStudent:
    def test_it_is_better_than_every_model_alone(self, hospitals, digits, tmp_path):
        result = fused(hospitals, digits, tmp_path / "out", student="mlp", examples=digits.test)
        alone = [quality.accuracy for name, quality in result.qualities.items() if name in hospitals]
        assert result.ensemble.accuracy > max(alone)
        assert result.student.accuracy > max(alone)
        assert result.student.accuracy > result.ensemble.accuracy - 0.06

    def test_its_file_is_a_model_that_says_what_was_measured(self, hospitals, digits, tmp_path):
        result = fused(hospitals, digits, tmp_path / "out", student="mlp", examples=digits.test)
        model = load_model(tmp_path / "out" / "model.safetensors")
        assert list(model.classes_) == list(WORDS)
        half = accuracy(model, digits)  # on both halves, of which one was measured
        assert half == pytest.approx(result.student.accuracy, abs=0.05)
        assert not (tmp_path / "out" / ".fusing").exists()

    def test_without_labels_there_is_agreement(self, hospitals, digits, tmp_path):
        result = fused(list(hospitals.values()), digits, tmp_path / "out")
        assert result.student.accuracy is None
        assert result.student.agreement > 0.7
        assert all(reason in repr(result) for reason in (*result.reasons, "agrees with", str(tmp_path / "out")))
        assert "Linear(" not in repr(result), "nobody wants to read the network"
        assert "<table>" in result._repr_html_()
        assert accuracy(load_model(tmp_path / "out" / "model.safetensors"), digits) > 0.7

    def test_another_architecture_than_any_model(self, hospitals, digits, tmp_path):
        result = fused(hospitals, digits, tmp_path / "out", student="cnn3", examples=digits.test, steps=400)
        assert result.starts.worth.keys() == {"fresh"}
        assert result.student.accuracy > 0.75

    def test_examples_are_never_learnt_from(self, hospitals, digits, tmp_path):
        """With the ensemble and the start fixed, wrong labels change the measurement and not one bit of the student."""
        images, labels = digits.test
        fixed = {"method": "probabilities", "start": "a"}
        right = fused(hospitals, digits, tmp_path / "right", examples=(images, labels), **fixed)
        wrong = fused(hospitals, digits, tmp_path / "wrong", examples=(images, (labels + 1) % 10), **fixed)
        assert right.student.accuracy > 0.7 > wrong.student.accuracy
        files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("right", "wrong")]
        assert files[0] == files[1]

    def test_labels_of_the_inputs_are_used_like_examples(self, hospitals, digits, tmp_path):
        images, labels = digits.test
        (tmp_path / "labels.txt").write_text("\n".join(map(str, labels.tolist())))
        result = fedfuse.fuse(hospitals, inputs=images, labels=tmp_path / "labels.txt", out=tmp_path / "out", **STEPS)
        assert result.student.accuracy > 0.7


class TestDifferentClasses:
    def test_together_they_know_all_of_them(self, specialists, digits, tmp_path):
        result = fused(specialists, digits, tmp_path / "out", student="mlp", examples=digits.test, steps=300)
        assert result.class_names == WORDS
        assert result.qualities["low"].accuracy < 0.75
        assert result.qualities["high"].accuracy < 0.75
        assert result.ensemble.accuracy > 0.85
        assert result.student.accuracy > 0.8

    def test_a_map_gives_classes_other_names(self, specialists, digits):
        maps = {"high": {"nine": "ix"}, "low": {"zero": "none"}}
        call = FuseCall(specialists, "mlp", digits.public, class_maps=maps)
        assert call.request.classes.names == ("none", *WORDS[1:9], "ix")


class TestGoingOn:
    def test_the_same_bytes_after_any_interruption(self, hospitals, digits, tmp_path, monkeypatch):
        monkeypatch.setattr(teaching, "EVERY", 0.0)
        options = {"student": "mlp", "steps": 300, "method": "probabilities"}
        fused(hospitals, digits, tmp_path / "alone", **options)
        for moment in (("teachers", 2), ("distil", 100), ("distil", 200)):

            def plug(what, done, _total, moment=moment):
                if (what, done) == moment:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                fused(hospitals, digits, tmp_path / "killed", progress=plug, **options)
        seen = []
        fused(hospitals, digits, tmp_path / "killed", progress=lambda *told: seen.append(told), **options)
        assert min(done for what, done, _ in seen if what == "teachers") == 3, "nobody is asked again"
        assert [done for what, done, _ in seen if what == "distil"] == [200, 300]
        first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("alone", "killed"))
        assert first == second

    def test_other_settings_begin_the_lesson_anew(self, hospitals, digits, tmp_path, monkeypatch):
        monkeypatch.setattr(teaching, "EVERY", 0.0)

        def plug(what, done, _total):
            if (what, done) == ("distil", 100):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fused(hospitals, digits, tmp_path / "out", progress=plug, steps=300)
        fused(hospitals, digits, tmp_path / "out", steps=200, seed=1)
        fused(hospitals, digits, tmp_path / "fresh", steps=200, seed=1)
        first, second = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("out", "fresh"))
        assert first == second

    def test_nothing_is_overwritten_unasked(self, hospitals, digits, tmp_path):
        fused(hospitals, digits, tmp_path / "out", steps=1)
        with pytest.raises(RunFolderError, match="holds a fused model"):
            fused(hospitals, digits, tmp_path / "out", steps=1)
        fused(hospitals, digits, tmp_path / "out", steps=1, overwrite=True)
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").write_text("years of work")
        with pytest.raises(RunFolderError, match=r"other files \(thesis\.txt\)"):
            fused(hospitals, digits, tmp_path / "mine")


class TestMemory:
    def test_models_that_are_put_away_are_the_same(self, hospitals, digits, tmp_path, monkeypatch):
        """However many there are, their weights lie in a file; a student begins as before."""
        models = {name: hospitals[name] for name in "ab"}
        options = {"student": "mlp", "examples": digits.test, "samples": 2}
        for method in ("auto", "fedbe"):
            for place, room in {"here": 2**27, "away": 0}.items():
                monkeypatch.setattr(shelf, "IN_MEMORY", room)
                fused(models, digits, tmp_path / method / place, method=method, **options)
            here, away = ((tmp_path / method / place / "model.safetensors").read_bytes() for place in ("here", "away"))
            assert here == away

    def test_merges_that_hold_all_models_are_for_small_ones(self, hospitals, digits, tmp_path, monkeypatch):
        models = {name: hospitals[name] for name in "ab"}
        small = fused(models, digits, tmp_path / "small", steps=1).starts.worth.keys()
        monkeypatch.setattr(merged, "MOST_NUMBERS", 100)
        large = fused(models, digits, tmp_path / "large", steps=1).starts.worth.keys()
        assert small - large == {"aligned", "regmean"}
        assert "average" in large

    @pytest.mark.parametrize(
        "lack", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried")]
    )
    def test_too_little_of_it_is_a_sentence(self, lack, hospitals, digits, tmp_path):
        def progress(*_told):
            raise lack

        with pytest.raises(FedfuseError, match="there is too little memory for this fusion; what is done is kept"):
            fused(hospitals, digits, tmp_path / "out", progress=progress)

    @pytest.mark.long
    def test_more_models_need_no_more_of_it(self, tmp_path):
        """Networks of 37 MB, of the student's architecture: eight need what two do, up to a third of one."""
        large = Mlp(hidden=(3000, 3000))
        for seed in range(8):
            weights = Weights.of(create(large, (1, 8, 8), 10, Key(seed)))
            save_model(tmp_path / f"{seed}.safetensors", large, (1, 8, 8), 10, weights)
        two, eight = (int(program(PEAK, tmp_path, number)) for number in (2, 8))
        assert eight - two < 12_000

    @pytest.mark.long
    def test_a_merge_of_models_larger_than_what_the_process_may_have(self, tmp_path):
        """Five folders of 74 MB each, in 300 MB of address space beyond what was there before."""
        program(LIMITED, tmp_path)
        assert (tmp_path / "out" / "model.safetensors").stat().st_size > 70_000_000


def program(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


PEAK = """
import resource, sys, torch, fedfuse
from fedfuse.federation import shelf
from fedfuse.fusing import merged
shelf.IN_MEMORY = merged.MOST_NUMBERS = 0
models = [f"{sys.argv[1]}/{seed}.safetensors" for seed in range(int(sys.argv[2]))]
fedfuse.fuse(models, inputs=torch.zeros(64, 1, 8, 8, dtype=torch.uint8), out=f"{sys.argv[1]}/out{sys.argv[2]}",
             steps=1, threads=1, batch_size=8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

LIMITED = """
import ctypes, resource, sys, torch, transformers, fedfuse
from pathlib import Path
from transformers.models.vit import modeling_vit
from fedfuse.fusing.api import FuseCall

folder = Path(sys.argv[1])
config = transformers.ViTConfig(image_size=32, patch_size=16, hidden_size=512, num_hidden_layers=6,
                                num_attention_heads=8, intermediate_size=2048)
network = transformers.ViTForImageClassification(config)
for seed in range(5):
    with torch.no_grad():
        network.classifier.bias.fill_(seed)
    network.save_pretrained(folder / f"{seed}")
del network
ctypes.CDLL(None).malloc_trim(0)
size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 300 * 2**20, resource.RLIM_INFINITY))
models = [str(folder / f"{seed}") for seed in range(1, 5)]
fedfuse.fuse(models, method="ties", base=str(folder / "0"), out=folder / "out")
"""


class TestPython:
    def test_networks_of_the_caller_stay_as_they_are(self, hospitals, digits, tmp_path):
        networks = [load_model(path).train() for path in hospitals.values()]
        before = [{name: t.clone() for name, t in network.state_dict().items()} for network in networks]
        student = load_model(hospitals["a"])
        fedfuse.fuse(networks, student=student, inputs=digits.public.numpy(), out=tmp_path / "out", **STEPS)
        for network, state in zip(networks, before, strict=True):
            assert network.training
            assert all(torch.equal(t, state[name]) for name, t in network.state_dict().items())
        original = load_model(hospitals["a"]).state_dict()
        assert all(torch.equal(t, original[name]) for name, t in student.state_dict().items())


class TestMerges:
    def test_an_average_is_the_average(self, hospitals, tmp_path):
        fedfuse.fuse([hospitals["a"], hospitals["b"]], method="average", out=tmp_path / "out")
        a, b, merged = (
            {name: t.double().numpy() for name, t in load_model(path).state_dict().items()}
            for path in (hospitals["a"], hospitals["b"], tmp_path / "out" / "model.safetensors")
        )
        for name in a:
            np.testing.assert_allclose(merged[name], (a[name] + b[name]) / 2, rtol=1e-6, atol=1e-7)

    def test_task_arithmetic_from_a_base(self, hospitals, tmp_path):
        """The sum of both moves from the base, times lambda."""
        fedfuse.fuse(
            [hospitals["a"], hospitals["b"]], method="task_arithmetic", base=hospitals["a"], merge={"scale": 0.5},
            out=tmp_path / "out",
        )  # fmt: skip
        a, b, merged = (
            load_model(path).state_dict()["classifier.weight"].double()
            for path in (hospitals["a"], hospitals["b"], tmp_path / "out" / "model.safetensors")
        )
        moves = [merged - a, b - a]
        ratio = float((moves[0] * moves[1]).sum() / moves[1].square().sum())
        torch.testing.assert_close(moves[0], ratio * moves[1], rtol=1e-4, atol=1e-6)
        assert ratio in (pytest.approx(0.5), pytest.approx(0.25))  # of a sum, or of a mean

    @pytest.mark.parametrize("method", ["soup", "aligned", "regmean", "fisher"])
    def test_with_data_the_merge_is_measured(self, method, hospitals, digits, tmp_path):
        models = {name: hospitals[name] for name in "ab"}
        result = fused(models, digits, tmp_path / "out", method=method, examples=digits.test, steps=0)
        assert result.distilled.steps == 0
        assert result.starts.chosen.name == method
        assert result.student.accuracy > 0.3

    def test_models_of_different_shape_are_refused(self, hospitals, tmp_path):
        with pytest.raises(ConfigError, match="c is of another architecture than a; with data they can be distilled"):
            fedfuse.fuse(hospitals, method="average", out=tmp_path / "out")

    def test_a_base_is_asked_for(self, hospitals, tmp_path):
        with pytest.raises(ConfigError, match="say which is the base"):
            fedfuse.fuse([hospitals["a"], hospitals["b"]], method="ties", out=tmp_path / "out")


def test_fedbe_draws_models_around_those_of_one_architecture(hospitals, digits, tmp_path):
    result = fused(hospitals, digits, tmp_path / "out", method="fedbe", samples=2, examples=digits.test)
    assert {"average of mlp", "mlp sample 1", "mlp sample 2"} <= result.qualities.keys()
    assert result.distilled.collected
    with pytest.raises(ConfigError, match="here are no two"):
        fused([hospitals["a"], hospitals["c"]], digits, tmp_path / "no", method="fedbe")


def test_fedbe_of_one_architecture_with_different_classes(specialists, digits, tmp_path):
    """Each group's samples know the classes of that group."""
    models = {f"{name}-{copy}": path for name, path in specialists.items() for copy in (1, 2)}
    result = fused(models, digits, tmp_path / "out", method="fedbe", samples=1, examples=digits.test)
    low, high = (result.qualities[f"average of mlp like {name}-1"].accuracy for name in specialists)
    assert low == pytest.approx(result.qualities["low-1"].accuracy)
    assert high == pytest.approx(result.qualities["high-1"].accuracy)


def test_an_ensemble_is_made_sure_where_no_equation_says_otherwise(hospitals, digits, tmp_path):
    def sureness(name, **options):
        return fused(hospitals, digits, tmp_path / name, **{**options, "steps": 0}).choice.fitted.sureness

    assert sureness("auto") > 1
    assert sureness("as it is", sure=False) == 1
    assert sureness("feddf", method="feddf") == 1
    assert sureness("sure feddf", method="feddf", sure=True) != 1


def test_weights_of_the_caller(hospitals, digits, tmp_path):
    """A model that counts for everything is the ensemble."""
    result = fused(hospitals, digits, tmp_path / "out", method="feded", weights=(0, 1, 0), examples=digits.test)
    assert result.ensemble.accuracy == result.qualities["b"].accuracy


def test_without_data_inputs_are_made(hospitals, digits, tmp_path):
    options = {"kind": "synthesised", "size": 200, "batch_size": 100, "steps": 20}
    result = fedfuse.fuse(
        hospitals, student="mlp", inputs=options, out=tmp_path / "out", examples=digits.test, start="a", **STEPS
    )
    facts = json.loads((tmp_path / "out" / "fuse.json").read_text())
    assert facts["inputs"]["name"] == "synthesised from the models"
    assert facts["inputs"]["count"] == 200
    assert result.student.accuracy > 0.3


class TestCard:
    def test_it_says_what_went_in_and_what_came_out(self, hospitals, digits, tmp_path):
        fused(hospitals, digits, tmp_path / "out", examples=digits.test, steps=5)
        card = (tmp_path / "out" / "README.md").read_text()
        assert card.startswith("---\nbase_model:")
        for name in ("a", "b", "c", "ensemble", "student"):
            assert f"| {name} |" in card
        facts = json.loads((tmp_path / "out" / "fuse.json").read_text(), parse_constant=pytest.fail)
        assert [model["name"] for model in facts["models"]] == ["a", "b", "c"]
        assert all(model["sha256"] in card for model in facts["models"])


class TestCheck:
    def test_all_that_is_wrong_is_said_at_once(self, hospitals, digits, tmp_path):
        (tmp_path / "broken.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0{")
        models = {**hospitals, "broken": tmp_path / "broken.safetensors", "missing": tmp_path / "nowhere"}
        checked = FuseCall(models, "mlp", digits.public).checked
        assert [finding.name for finding in checked.problems] == ["broken", "missing"]
        assert [member.about.name for member in checked.members] == ["a", "b", "c"]
        with pytest.raises(ConfigError, match="1 more: --check shows all"):
            checked.require()

    @pytest.mark.parametrize(
        ("options", "sentence"),
        [
            ({"method": "feddg"}, "unknown method 'feddg' .did you mean 'fed"),
            ({"method": "feded"}, "weights are what feded counts models by"),
            ({"method": "feded", "plan": {"weights": (1, 2)}}, "there are 2 weights for 3 models; give one for each"),
            ({"plan": {"step": 3}}, "unknown option 'step' .did you mean 'steps'"),
            ({"plan": {"steps": -1}}, "steps: Input should be greater than or equal to 0"),
            ({"plan": {"merge": {"density": 0.1}}}, "neither method nor start names one"),
            ({"about": {"x": {}}}, "unknown model 'x'"),
            ({"about": {"a": {"colour": 1}}}, "a: unknown key 'colour'"),
            ({"input_column": "pixels"}, "no table that could have an input column 'pixels'"),
            ({"label_column": "species"}, "no table of examples with a label column 'species'"),
            ({"normalise": "half"}, "how another network than the models' prepares its inputs; say student="),
            ({"inputs": "nowhere"}, "unknown file, folder or dataset 'nowhere'"),
            ({"inputs": ["one text", "two"]}, "holds texts, but the models read images"),
            ({"student": "resnet9"}, "resnet9"),
            ({"labels": [1, 2]}, "each input needs one"),
            ({"examples": (np.zeros((4, 8, 8), np.uint8), [0, 1, 2, 10])}, "no numbers of the 10 classes"),
            ({"classes": ["zero", "one"]}, "a knows an unknown class 'two'"),
        ],
    )
    def test_one_sentence(self, options, sentence, hospitals, digits, tmp_path):
        call = FuseCall(**{"models": hospitals, "inputs": digits.public, **options})
        with pytest.raises((ConfigError, DataError), match=sentence):
            call.run(tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_progress_is_printed_told_or_refused(self, hospitals, digits, tmp_path, capsys):
        heard = []
        for folder, progress in (("a", True), ("b", lambda *step: heard.append(step))):
            fedfuse.fuse(hospitals, inputs=digits.public, steps=2, out=tmp_path / folder, progress=progress)
        assert "distil: 2" in capsys.readouterr().out
        assert ("distil", 2, 2) in heard
        with pytest.raises(ConfigError, match=r"^progress='auto': give True or False$"):
            fedfuse.fuse(hospitals, inputs=digits.public, steps=2, out=tmp_path / "c", progress="auto")

    def test_an_unknown_start(self, hospitals, digits, tmp_path):
        with pytest.raises(ConfigError, match="unknown start 'd'"):
            fused(hospitals, digits, tmp_path / "out", start="d")

    def test_remarks(self, hospitals, digits):
        twice = {"one": hospitals["a"], "other": Path(hospitals["a"])}
        said = FuseCall(twice, None, digits.public).checked.lines()
        assert any("other is the same model as one" in line for line in said)
        assert any("licences" in line for line in said)
