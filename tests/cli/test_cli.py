"""The command line as a person meets it: output, exit codes, and one sentence for every mistake."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest
import yaml

import fedfuse
from fedfuse.cli import main
from fedfuse.cli.interrupts import ENDING
from fedfuse.core import tensor_files
from fedfuse.experiment import presets
from fedfuse.methods import METHODS
from fedfuse.report.comparison import draw_comparison
from tests.reliability.forked import Forked, command_line

pytestmark = pytest.mark.usefixtures("without_pictures")
InProcess = Callable[..., subprocess.CompletedProcess[str]]
BRIEF = ("federation.rounds=2", "training.epochs=1", "evaluation.pictures=false")
QUICK = (*BRIEF, "methods.feddf.fuse.distiller.steps=4")
OF_QUICK = "digits-epochs=1-steps=4-feddf-seed0"
"""Where a run of digits with these lies."""


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "fedfuse", *arguments]


def fedfuse_cli(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=folder, capture_output=True, text=True, timeout=400)


@pytest.fixture
def in_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same command line inside this process, which spares each test the start of another one."""

    def run(*arguments: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["fedfuse", *arguments])
        before = {number: signal.getsignal(number) for number in ENDING}
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, code, out, err)

    return run


def settings(*assignments: str) -> list[str]:
    return [word for assignment in assignments for word in ("--set", assignment)]


def only_sentence(result: subprocess.CompletedProcess[str]) -> str:
    """The one line on standard error of a command that refused."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("fedfuse: ")
    return lines[0].removeprefix("fedfuse: ")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder in which ``fedfuse run digits`` was run, and what it printed."""
    folder = tmp_path_factory.mktemp("finished")
    result = fedfuse_cli(folder, "run", "digits", *settings(*QUICK, "evaluation.pictures=true"))
    assert result.returncode == 0, result.stderr
    return folder, result.stdout


def test_run_prints_a_table_and_says_where_everything_is(finished: tuple[Path, str]) -> None:
    folder, printed = finished
    assert "round 2/2" in printed
    assert f"folder   runs/{OF_QUICK}" in printed
    picture = re.search(r"picture +(\S+)", printed)
    assert picture
    assert (folder / picture[1]).read_bytes().startswith(b"\x89PNG")


def test_run_folder_has_its_fixed_names(finished: tuple[Path, str]) -> None:
    run = finished[0] / "runs" / OF_QUICK
    summary = json.loads((run / "summary.json").read_text())
    assert summary["method"] == "feddf"
    assert summary["seed"] == 0
    assert summary["rounds"] == 2
    prototype = summary["prototypes"]["mlp"]
    assert {"accuracy_last", "accuracy_best", "accuracy_before_fusion", "accuracy_after_fusion"} <= prototype.keys()
    assert {"ensemble_accuracy", "rounds_to_target"} <= prototype.keys()
    assert {"bytes_up", "bytes_down", "seconds"} <= summary.keys()
    events = [json.loads(line)["event"] for line in (run / "events.jsonl").read_text().splitlines()]
    assert events[0] == "run_started"
    assert events[-1] == "run_finished"
    assert events.count("round_finished") == 2
    assert json.loads((run / "partition.json").read_text())["sha256"] == summary["partition_sha256"]
    assert (run / "final" / "mlp.safetensors").exists()
    assert any((run / "checkpoints").iterdir())


def test_written_config_is_complete_and_runs_again_to_the_same_bytes(
    finished: tuple[Path, str], in_process: InProcess
) -> None:
    folder, _ = finished
    run = folder / "runs" / OF_QUICK
    written = yaml.safe_load((run / "config.yaml").read_text())
    assert written["method"]["fuse"]["distiller"]["patience"] == 150
    assert written["compute"]["threads"] == 1
    result = in_process("run", str(run / "config.yaml"), "--out", "again", "--quiet", folder=folder)
    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    again = folder / "again" / "final" / "mlp.safetensors"
    assert again.read_bytes() == (run / "final" / "mlp.safetensors").read_bytes()
    assert (folder / "again" / "config.yaml").read_text() == (run / "config.yaml").read_text()


def test_final_weights_load_as_a_model(finished: tuple[Path, str]) -> None:
    model = fedfuse.load_model(finished[0] / "runs" / OF_QUICK / "final" / "mlp.safetensors")
    assert sum(p.numel() for p in model.parameters()) == 64 * 64 + 64 + 64 * 10 + 10
    assert not model.training


def test_occupied_folder_is_not_overwritten_unasked(finished: tuple[Path, str], in_process: InProcess) -> None:
    said = only_sentence(in_process("run", "digits", *settings(*QUICK), folder=finished[0]))
    assert "already holds a run" in said
    assert "--resume" in said
    assert "--overwrite" in said


def test_resume_with_another_config_names_the_key(finished: tuple[Path, str], in_process: InProcess) -> None:
    other = settings(*QUICK, "training.batch_size=16")
    result = in_process("run", "digits", *other, "--resume", "--out", f"runs/{OF_QUICK}", folder=finished[0])
    assert "training.batch_size is 32 there and 16 here" in only_sentence(result)


def test_method_and_seed_are_shortcuts(tmp_path: Path, in_process: InProcess) -> None:
    done = in_process("run", "digits", "--method", "fedprox", "--seed", "7", *settings(*QUICK), "--quiet")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "digits-epochs=1-fedprox-seed7" / "summary.json").is_file()


def test_a_run_says_how_many_updates_were_refused(tmp_path: Path, in_process: InProcess) -> None:
    wild = ("training.optimizer.learning_rate=1e30", "method=fedavg", *BRIEF)
    done = in_process("run", "digits", *settings(*wild), "--out", "wild")
    assert done.returncode == 3, done.stderr
    events = [json.loads(line) for line in (tmp_path / "wild" / "events.jsonl").read_text().splitlines()]
    refused = sum(event["event"] == "update_refused" for event in events)
    asked = sum(len(event["clients"]) for event in events if event["event"] == "round_started")
    assert refused > 0
    assert f"refused  {refused} of {asked} updates; events.jsonl says why" in done.stdout
    assert "refused" not in in_process("run", "digits", *settings("method=fedavg", *BRIEF)).stdout


def test_a_run_that_taught_nothing_ends_with_3_and_a_sentence(tmp_path: Path, in_process: InProcess) -> None:
    """Once more when it is resumed, though there is nothing left to do; and nothing of it is lost."""
    wild = settings("training.optimizer.learning_rate=1e30", "method=fedavg", *BRIEF)
    for more in ((), ("--resume",), ("--resume", "--quiet")):
        done = in_process("run", "digits", *wild, "--out", "wild", *more)
        assert done.returncode == 3
        assert done.stderr.startswith("fedfuse: nobody counted in any of 2 rounds: clients were ")
        assert done.stderr.count("\n") == 1
    summary = json.loads((tmp_path / "wild" / "summary.json").read_text())
    assert summary["updates_counted"] == 0
    assert summary["untaught"] == ["mlp"]
    assert summary["rounds_in_vain"] == summary["rounds"]
    assert (
        "untaught mlp: final weights are those of the start"
        in in_process("run", "digits", *wild, "--out", "wild", "--resume").stdout
    )


def test_a_server_that_steps_too_far_taught_nothing_either(in_process: InProcess) -> None:
    steps = settings("method={name: fedavg, merge: {kind: mean, server_rate: 1e30}}", *BRIEF)
    done = in_process("run", "digits", *steps)
    assert done.returncode == 3
    assert done.stderr == "fedfuse: no model was taught in any round; events.jsonl says why (model_diverged)\n"


def test_a_run_says_when_its_result_is_the_ensembles(in_process: InProcess) -> None:
    done = in_process("run", "digits", "--method", "1-ensemble", *settings(*QUICK))
    assert "result   the accuracy of the ensemble" in done.stdout
    assert "result " not in in_process("run", "digits", "--method", "fedavg", *settings(*QUICK)).stdout


def test_the_method_is_in_every_row_of_a_comparison_in_a_file(tmp_path: Path, in_process: InProcess) -> None:
    """Numbers as wide as they come: several experiments and seeds, and nothing says how wide the file is."""
    files = [tmp_path / f"{name}.yaml" for name in ("alpha-0.05-of-the-preset", "alpha-0.5")]
    for file in files:
        file.write_text(presets.text("digits").replace("name: digits\ndata", f"name: {file.stem}\ndata"))
    arguments = ("--methods", "fedavg,feddf", "--seeds", "0,1", *settings(*QUICK), "--out", "wide")
    done = in_process("compare", *map(str, files), *arguments)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if "±" in line and "seeds" not in line]
    assert [line.split()[0] for line in rows] == ["fedavg", "feddf"] * 2
    assert max(map(len, done.stdout.splitlines()[-14:])) <= 80


def test_compare_tells_methods_apart(tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedfuse.experiment.comparison.outcome.draw_comparison", draw_comparison)
    arguments = ("compare", "digits", "--methods", "fedavg,feddf", *settings(*QUICK))
    result = in_process(*arguments, "--seeds", "0,1", "--out", "both")
    assert result.returncode == 0, result.stderr
    assert re.search(r"fedavg .* ± ", result.stdout)
    assert re.search(r"feddf .* ± ", result.stdout)
    assert result.stdout.endswith("page     fedfuse report both\n")
    rows = json.loads((tmp_path / "both" / "comparison.json").read_text())["rows"]
    assert [(row["method"], len(row["accuracy_last"]["values"])) for row in rows] == [("fedavg", 2), ("feddf", 2)]
    assert (tmp_path / "both" / "comparison.png").read_bytes().startswith(b"\x89PNG")
    alone = in_process(
        "compare", "digits", "--methods", "feddf", *arguments[4:], "--seeds", "1", "--out", "a", "--jobs", "2"
    )
    assert alone.returncode == 0, alone.stderr
    weights = [tmp_path / out / "digits-feddf-seed1" / "final" / "mlp.safetensors" for out in ("both", "a")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


MISTAKES = [
    (["run", "digitz"], "unknown file or preset 'digitz' (did you mean 'digits'?)"),
    (["run", "missing.yaml"], "missing.yaml: No such file"),
    (settings("partition.alhpa=0.3"), "partition: unknown key 'alhpa' (did you mean 'alpha'?)"),
    (settings("rounds=3"), "unknown key 'rounds' (did you mean 'federation.rounds'?)"),
    (settings("training.epochs=many"), "training.epochs is 'many', but should be a whole number"),
    (settings("training.optimizer=adam"), "should be a mapping (did you mean optimizer: {kind: adam}?)"),
    (settings("source=held_out"), "should be a mapping (did you mean source: {kind: held_out}?)"),
    (settings("models.mlp=resnet8"), "should be a mapping (did you mean mlp: {arch: resnet8}?)"),
    (settings("data=digits"), "should be a mapping (did you mean data: {name: digits}?)"),
    (settings("federation=mine"), "federation is 'mine', but should be a mapping"),
    (settings("seed=yes"), "seed is 'True', but should be a whole number"),
    (settings("engine.workers=true"), "engine.workers is 'True', but should be"),
    (settings("training.optimizer.learning_rate=on"), "learning_rate is 'True', but should be a number"),
    (["run", "/"], "/ is no run folder; give a file, a preset or the folder of a run"),
    (["run", ""], "an empty text is no run folder"),
    (settings("training.epochs=0"), "training.epochs is 0, but should be greater than or equal to 1"),
    (settings("data.public=1.5"), "data.public: 1.5 is not a share"),
    (settings("method=fedavgg"), "unknown method 'fedavgg' (did you mean 'fedavg'?)"),
    (settings("method.fuse.distiller.stepz=3"), "method.fuse.distiller: unknown key 'stepz'"),
    (settings("data.name=cifar"), "unknown dataset 'cifar' (did you mean 'cifar10'?)"),
    (settings("models.mlp.arch=resnet9"), "models.mlp: unknown arch 'resnet9' (did you mean 'resnet8'?)"),
    (settings("models.mlp={arch: convnet}"), "convnet"),
    (settings("partition.clients=100000"), "more than the 1006 training examples"),
    (settings("partition={kind: step, clients: 10, major_classes: 2, minor_per_class: 90}"), "class 0"),
    (settings("source={kind: dataset, data: {name: blobs}}"), "inputs of shape 2, but the clients' models read 1x8x8"),
    (settings("data.public=0"), "source held_out needs data.public above 0"),
    (settings("federation.clients_per_round=50"), "federation.clients_per_round is 50"),
    (settings("method.screen=[{kind: drop_worst}]", "data.validation=0"), "set data.validation"),
    (settings("nonsense"), "write key=value"),
    (["compare", "digits", "--methods", "foo"], "unknown method 'foo'"),
    (["compare", "digits", "--seeds", "0,x"], "write whole numbers"),
    (["methods", "foo"], "unknown method 'foo'"),
    (["datasets", "minst"], "unknown dataset 'minst' (did you mean 'mnist'?)"),
    (settings("partition={kind: natural}"), "partition natural needs data that says whose each example is"),
    (["presets", "foo"], "unknown preset 'foo'"),
]


@pytest.mark.parametrize(("arguments", "sentence"), MISTAKES, ids=str)
def test_mistake_gets_one_sentence_and_leaves_no_folder(
    tmp_path: Path, in_process: InProcess, arguments: list[str], sentence: str
) -> None:
    full = ["run", "digits", *arguments] if arguments[0] == "--set" else arguments
    assert sentence in only_sentence(in_process(*full))
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("data: {name: digits\n", "is not YAML: expected ',' or '}'"),
        ("seed: 1\nseed: 2\n", "the key 'seed' is written twice in line 2"),
        ("[1, 2]\n", "should be a mapping"),
        ("models: {m: {arch: mlp}}\n", "data is missing"),
        ("data: {name: digits}\n", "models is missing"),
        ("data: 3\nmodels: {m: {arch: mlp}}\n", "data is 3, but should be a mapping"),
    ],
)
def test_broken_file_gets_one_sentence(tmp_path: Path, in_process: InProcess, text: str, sentence: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    assert sentence in only_sentence(in_process("run", "bad.yaml"))


def test_ten_lines_of_yaml_on_own_data(tmp_path: Path, in_process: InProcess) -> None:
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 300)
    np.savez(tmp_path / "own.npz", x=random.normal(size=(300, 5)).astype("float32") + labels[:, None], y=labels)
    (tmp_path / "own.yaml").write_text(
        "name: own\n"
        "data: {name: npz, path: own.npz}\n"
        "partition: {kind: dirichlet, clients: 4, alpha: 1.0}\n"
        "models: {small: {arch: mlp, hidden: [8]}}\n"
        "federation: {rounds: 3}\n"
        "method: fedprox\n"
    )
    result = in_process("run", "own.yaml")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "runs" / "own-fedprox-seed0" / "final" / "small.safetensors").exists()


def test_a_column_that_numbers_rows_is_pointed_out_and_can_be_left_out(tmp_path: Path, in_process: InProcess) -> None:
    rows = [f"{row},{row % 3 + row / 500},{row % 3}" for row in range(200)]
    (tmp_path / "own.csv").write_text("\n".join(["id,width,label", *rows]) + "\n")
    own = ("data: {name: csv, path: own.csv}", "models: {small: {arch: mlp, hidden: [4]}}", "federation: {rounds: 1}")
    (tmp_path / "own.yaml").write_text("\n".join(own))
    hint = "read as inputs like any other: id; data.ignore_columns: [id] leaves them out"
    assert in_process("run", "own.yaml", "--out", "with").stdout.startswith(hint)
    assert in_process("compare", "own.yaml", "--out", "study").stdout.startswith(hint)
    without = in_process("run", "own.yaml", "--out", "without", *settings("data.ignore_columns=[id]"))
    assert without.returncode == 0, without.stderr
    assert "read as inputs" not in without.stdout
    parameters = [
        json.loads((tmp_path / run / "summary.json").read_text())["prototypes"]["small"]["parameters"]
        for run in ("with", "without")
    ]
    assert parameters[0] - parameters[1] == 4  # one input less for each hidden unit


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_says_how_to_go_on_and_does(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch, end: signal.Signals
) -> None:
    long = settings(*QUICK, "federation.rounds=30")
    checkpoints = tmp_path / "runs" / OF_QUICK / "checkpoints"
    monkeypatch.chdir(tmp_path)
    process = Forked(partial(command_line, "run", "digits", *long, "--quiet"), tmp_path / "said")
    process.wait(lambda: checkpoints.exists() and any(checkpoints.iterdir()))
    assert process.code() is None, "ended before it could be interrupted"
    os.kill(process.pid, end)
    process.wait()
    assert process.code() == 2
    assert (tmp_path / "said").read_text().strip() == (
        f"fedfuse: interrupted; finished rounds are kept, go on with: fedfuse run runs/{OF_QUICK} --resume"
    )
    result = in_process("run", f"runs/{OF_QUICK}", "--resume")
    assert result.returncode == 0, result.stderr
    assert json.loads((tmp_path / "runs" / OF_QUICK / "summary.json").read_text())["rounds"] == 30


def test_interrupted_before_the_folder_is_its_own_a_run_does_not_send_one_to_another(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert in_process("run", "digits", *settings("method=fedavg", *BRIEF), "--out", "my run").returncode == 0

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fedfuse.experiment.run.build", interrupted)
    for where in ("my run", "nowhere"):
        said = in_process("run", "digits", "--method", "fedprox", "--out", where, "--overwrite").stderr
        assert said.strip().endswith("go on with: the same command")
    again = ("run", "digits", *settings("method=fedavg", *BRIEF), "--out", "my run", "--overwrite")
    assert in_process(*again).stderr.strip().endswith("go on with: fedfuse run 'my run' --resume")


def test_full_disk_gets_one_sentence_and_keeps_what_is_there(
    tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = tensor_files.write_tensors

    def full(file: BinaryIO, *content: Any) -> int:
        if "round-000002.safetensors" in file.name:
            raise OSError(errno.ENOSPC, "No space left on device", file.name)
        return write(file, *content)

    arguments = ["run", "digits", *settings("method=fedavg", *BRIEF), "--quiet"]
    with monkeypatch.context() as patch:
        patch.setattr(tensor_files, "write_tensors", full)
        assert "the disk is full" in only_sentence(in_process(*arguments))
    assert in_process(*arguments, "--resume").returncode == 0
    clean = in_process(*arguments, "--out", "clean")
    assert clean.returncode == 0, clean.stderr
    weights = [tmp_path / run / "final/mlp.safetensors" for run in ("runs/digits-epochs=1-fedavg-seed0", "clean")]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_file_too_large_for_the_system_gets_one_sentence(tmp_path: Path) -> None:
    """A real failing write(): the process may not write files above 100 kB."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    arguments = ("run", "digits", *settings("models.mlp.hidden=[1000]", "method=fedavg", *BRIEF), "--quiet")
    result = subprocess.run(
        command(*arguments), cwd=tmp_path, capture_output=True, text=True, timeout=400, preexec_fn=limit
    )
    assert "File too large" in only_sentence(result)


def test_lists(tmp_path: Path, in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for name, words in {
        "methods": list(METHODS),
        "datasets": ["digits", "cifar10", "swiss_roll"],
        "models": ["mlp", "resnet8", "78,042"],
        "presets": presets.names(),
        "--help": ["compare"],
    }.items():
        result = in_process(name)
        assert result.returncode == 0, result.stderr
        for word in words:
            assert word in result.stdout
    assert fedfuse_cli(tmp_path, "--version").stdout == f"fedfuse {fedfuse.__version__}\n"


def test_a_dataset_card_says_what_it_is_and_how_to_get_it(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FEDFUSE_DATA", raising=False)
    monkeypatch.setenv("COLUMNS", "400")
    card = in_process("datasets", "emnist_letters").stdout
    for word in ("1x28x28", "26", "124,800 training and 20,800 test", "0.1307", "NIST", "FEDFUSE_DATA", "https://"):
        assert word in card
    assert "partition natural keeps them" in in_process("datasets", "femnist_digits").stdout


def test_help_does_not_load_torch() -> None:
    script = "import sys, fedfuse.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize("name", sorted(METHODS))
def test_printed_method_is_a_valid_method_section(in_process: InProcess, name: str) -> None:
    printed = yaml.safe_load(in_process("methods", name, "--yaml").stdout)
    data = {"data": {"name": "digits"}, "models": {"m": {"arch": "mlp"}}}
    assert fedfuse.Experiment(**data, **printed).config.recipe == fedfuse.Experiment(**data, method=name).config.recipe


def test_printed_preset_is_the_file_itself(in_process: InProcess) -> None:
    assert in_process("presets", "digits").stdout == presets.text("digits")


def test_whichever_metrics_are_named_are_printed(in_process: InProcess, tmp_path: Path) -> None:
    (tmp_path / "failing_metric.py").write_text(
        "from fedfuse.parts.metrics import Metric\n\n"
        "class Fails(Metric):\n    def compute(self, predictions):\n        return 1 / 0\n"
    )
    metrics = "evaluation.metrics=[macro_f1, auroc, 'failing_metric:Fails']"
    result = in_process("run", "digits", *settings(*QUICK, metrics))
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("metric Fails has no value: ZeroDivisionError: division by zero") == 1
    assert re.search(r"^ macro_f1 +mlp +[\d.]+ % +[\d.]+ %", result.stdout, re.MULTILINE)
    assert re.search(r"^ auroc +ensemble +0\.\d+ +0\.\d+ +-$", result.stdout, re.MULTILINE)
    assert re.search(r"^ Fails +mlp +- +- +-$", result.stdout, re.MULTILINE)
    assert max(len(line) for line in result.stdout.splitlines() if not line.startswith("metric Fails")) <= 80
    compared = in_process("compare", "digits", "--methods", "fedavg,fedprox", *settings(*QUICK, metrics))
    assert re.search(r"^ macro_f1 +fedprox +[\d.]+ % +[\d.]+ %$", compared.stdout, re.MULTILINE)
    sys.modules.pop("failing_metric")
