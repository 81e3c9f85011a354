"""``fedfuse fuse``: trained models into one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fedfuse.cli.console import console, print_facts, print_sheet, say
from fedfuse.cli.options import Quiet
from fedfuse.core.errors import ConfigError, FedfuseError, shortened, unknown
from fedfuse.core.text import is_utf8

Pairs = Annotated[
    list[str] | None,
    typer.Option("--about", metavar="MODEL.KEY=VALUE", help="what a model's file does not say: b.arch=resnet20"),
]


def fuse(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help="files or folders; NAME=PATH gives a name")],
    data: Annotated[
        str | None, typer.Option(help="inputs without labels: folder of images, file, dataset; made up if not given")
    ] = None,
    out: Annotated[Path, typer.Option(help="the folder to write")] = Path("fused"),
    student: Annotated[
        str | None, typer.Option(help="architecture, folder or model (default: the first model's architecture)")
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, feddf, fedbe, feded, confidence, entropy; or a merge: soup, ties, ...")
    ] = "auto",
    examples: Annotated[str | None, typer.Option(help="labelled examples, to measure by and not to learn")] = None,
    labels: Annotated[Path | None, typer.Option(help="labels of the inputs, one per line, used like examples")] = None,
    classes: Annotated[str | None, typer.Option(help="the common classes, separated by commas")] = None,
    class_maps: Annotated[
        list[str] | None, typer.Option("--map", metavar="MODEL:THEIRS=OURS", help="what a model's class is called here")
    ] = None,
    about: Pairs = None,
    base: Annotated[
        str | None, typer.Option(help="of merges and adapters: the model that all were trained from")
    ] = None,
    written_as: Annotated[
        str | None, typer.Option("--as", metavar="lora", help="write the change from the base as a LoRA adapter")
    ] = None,
    rank: Annotated[int | None, typer.Option(help="of that adapter (default: 16)")] = None,
    normalise: Annotated[str | None, typer.Option(help="of the student: a dataset's name, half, none")] = None,
    assignments: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="steps, start, seed, limit, augment, ...")
    ] = None,
    input_column: Annotated[str | None, typer.Option(help="of a table: where the inputs are")] = None,
    label_column: Annotated[str | None, typer.Option(help="of a table of examples: where the labels are")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="processes in which models are asked; same bits")] = None,
    check: Annotated[bool, typer.Option("--check", help="say what fits and what does not, and stop")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="say how long it would take, and stop")] = False,
    trust_own_code: Annotated[bool, typer.Option("--trust-own-code", help="call functions that files name")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace a model that is already there")] = False,
    quiet: Quiet = False,
) -> None:
    """Fuse trained models, also of different architectures, into one; interrupted, the same command goes on."""
    from fedfuse.cli.stages import Stages
    from fedfuse.fusing.api import FuseCall
    from fedfuse.fusing.estimate import estimate
    from fedfuse.fusing.fuse import FuseResult, command_of
    from fedfuse.fusing.measuring import quality_sheet
    from fedfuse.fusing.merge_only import MergeRequest

    call = FuseCall(
        _named(models),
        student,
        _source(data),
        method=method,
        plan={**_workers(workers), **_assigned(assignments or ()), **_form(written_as, rank)},
        examples=examples,
        labels=labels,
        classes=None if classes is None else [name.strip() for name in classes.split(",")],
        class_maps=_maps(class_maps or ()),
        about=_about(about or ()),
        base=base,
        normalise=normalise,
        trust_own_code=trust_own_code,
        input_column=input_column,
        label_column=label_column,
        command=command_of(sys.argv[1:]),
    )
    checked = call.checked
    sheet = checked.sheet()
    if sheet.rows and (check or not quiet):
        print_sheet(sheet)
    if check:
        for line in checked.lines() or ["everything fits"]:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        checked.require()
        return
    checked.require()
    if not quiet:
        say(finding.problem for finding in checked.findings)
    if dry_run:
        request = call.request
        if isinstance(request, MergeRequest):
            raise ConfigError(
                "a merge without data takes as long as its files are read and written; leave --dry-run out"
            )
        print_facts(**estimate(request).facts())
        return
    with Stages(console, quiet) as progress:
        try:
            result = call.run(out, overwrite, progress)
        except KeyboardInterrupt:
            raise FedfuseError("interrupted; what is done is kept, go on with the same command") from None
    if not quiet:
        if isinstance(result, FuseResult):
            print_sheet(quality_sheet(result.qualities))
        for reason in result.reasons:
            console.print(reason, highlight=False, markup=False, soft_wrap=True)
        print_facts(folder=out)


def _named(models: list[str]) -> dict[str, str] | list[str]:
    """Names that were given with an equals sign; a file may have one in its own name."""
    pairs = [model.partition("=") for model in models]
    if not any(equals and not Path(model).exists() for model, (_, equals, _) in zip(models, pairs, strict=True)):
        return models
    named: dict[str, str] = {}
    for model, (name, equals, path) in zip(models, pairs, strict=True):
        key, value = (name, path) if equals and not Path(model).exists() else (Path(model).stem, model)
        if key in named:
            raise ConfigError(f"two models are called {key}; give them names: one={named[key]} other={value}")
        named[key] = value
    return named


def _source(data: str | None) -> Any:
    """A place, or a source with its settings as an experiment file has them: {kind: generator, ...}."""
    if data is None or not data.lstrip().startswith("{") or Path(data).exists():
        return data
    return _value(data, "--data")


def _workers(number: int | None) -> dict[str, Any]:
    return {} if number is None else {"workers": number}


def _assigned(assignments: Sequence[str]) -> dict[str, Any]:
    return {key: _value(text, f"--set {shortened(key)}") for key, text in (_pair(one, "--set") for one in assignments)}


def _form(written_as: str | None, rank: int | None) -> dict[str, Any]:
    """How the result is to be written."""
    if written_as not in (None, "lora"):
        raise ConfigError(unknown("form", written_as, ["lora"]))
    return ({"as_lora": True} if written_as else {}) | ({"rank": rank} if rank is not None else {})


def _about(pairs: Sequence[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for address, text in (_pair(one, "--about") for one in pairs):
        model, dot, key = address.rpartition(".")
        if not dot:
            raise ConfigError(f"--about {shortened(address)}: write MODEL.KEY=VALUE, for example b.arch=resnet20")
        found.setdefault(model, {})[key] = _value(text, f"--about {shortened(address)}")
    return found


def _maps(pairs: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for address, ours in (_pair(one, "--map") for one in pairs):
        model, colon, theirs = address.partition(":")
        if not colon:
            raise ConfigError(f"--map {shortened(address)}: write MODEL:THEIRS=OURS, for example b:feline=cat")
        found.setdefault(model, {})[theirs] = ours
    return found


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not is_utf8(text):
        raise ConfigError(f"{option} {shortened(text)!a}: write a name, an equals sign and a value")
    return name, value


def _value(text: str, where: str) -> Any:
    from fedfuse.core.yaml_text import load_yaml

    return load_yaml(text, where)
