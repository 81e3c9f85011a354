"""``fedfuse flower check``, ``receipt`` and ``status``: what a party does beside starting its node."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fedfuse.cli.console import console, print_facts
from fedfuse.core.errors import ConfigError, DataError

Client = Annotated[int, typer.Option(min=0, help="the party's number, from 0")]
Prototype = Annotated[str | None, typer.Option(help="the model to train, of the experiment's models")]
Data = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="this party's examples: .csv, .parquet, .npz, a folder of images, or a .yaml that says more",
    ),
]
Loader = Annotated[str | None, typer.Option(metavar="MODULE:FUNCTION", help="a function that gives them instead")]
Own = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="where this machine has the experiment's data, e.g. data.path=..."),
]


def node_config(
    prototype: str | None,
    data: str | None,
    loader: str | None,
    own: Sequence[str] | None,
    state: Path | None = None,
    budget: float | None = None,
) -> dict[str, str | float]:
    """What a node is told, as far as something is said; files that are there by their whole names."""
    if data is not None and Path(data).expanduser().exists():
        data = str(Path(data).expanduser().resolve())
    given = {
        "prototype": prototype,
        "data": data,
        "loader": loader,
        "set": shlex.join(own) if own else None,
        "state": str(state.expanduser().resolve()) if state else None,
        "budget": budget,
    }
    return {key: value for key, value in given.items() if value is not None}


def check(
    experiment: Annotated[str, typer.Argument(metavar="APP_OR_EXPERIMENT", help="the app's folder, or a YAML file")],
    client: Client = 0,
    prototype: Prototype = None,
    data: Data = None,
    loader: Loader = None,
    own: Own = None,
    keys: Annotated[Path | None, typer.Option(help="folder with ca.crt and this client's key")] = None,
    superlink: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="try to reach it, with --keys")] = None,
) -> None:
    """Try a party's data, model and keys against an experiment, before the day."""
    if superlink is not None and keys is None:
        raise ConfigError("--superlink needs --keys, which has the certificate to know it by")
    from fedfuse.data.readers.contents import describe
    from fedfuse.flower.check import experiment_of, reach, rehearse
    from fedfuse.flower.keys import check_node
    from fedfuse.flower.party import settings_of
    from fedfuse.flower.receipts import sizes

    told = node_config(prototype, data, loader, own)
    config = settings_of(experiment_of(experiment), {}, told)
    print_facts(experiment=f"{config.name}: {config.method.called}, {config.federation.rounds} rounds, client {client}")
    found = rehearse(config, client, told)
    print_facts(
        data=f"{len(found.examples):,} examples, {describe(found.examples.inputs[:0].numpy())}, {_origin(told)}",
        inputs=found.extent,
        classes=", ".join(f"{name} {count:,}" for name, count in found.counts.items()),
        model=f"{found.prototype}, {found.parameters:,} parameters",
        step=f"on {found.batch} examples, loss {found.loss:.4g}",
        sends=f"{sizes(found.records)} per round",
        **({"hidden": found.hidden} if found.hidden else {}),
        **({"privacy": found.privacy} if found.privacy else {}),
    )
    if keys is not None:
        check_node(keys, client)
        print_facts(keys=f"{keys} can be used by client {client}")
    if superlink is not None and keys is not None:
        reach(superlink, keys)
        print_facts(link=f"{superlink} answers, with the certificate of this federation")
    console.print("this party can take part", style="green")


def receipt(
    folder: Annotated[
        Path | None, typer.Argument(metavar="STATE", help="the node's folder, or a receipts file")
    ] = None,
) -> None:
    """Show all that a node sent, and whether a line is missing."""
    from fedfuse.cli.tables import table
    from fedfuse.flower.receipts import last_receipt, read_receipts
    from fedfuse.flower.status import default_state

    place = folder or default_state()
    files = [place] if place.is_file() else sorted(place.glob("receipts/*/client-*.jsonl"))
    if not files:
        raise DataError(f"{place} has no receipts; name the folder that the node has as --state")
    for file in files:
        totals = {name: size for name, size in (last_receipt(file) or {"total": {}})["total"].items() if size}
        rows = table("time", "round", "sent", *totals, title=str(file), numbers=("round", *totals))
        for line in read_receipts(file):
            sent = [f"{line['records'][name]['bytes']:,}" if name in line["records"] else "" for name in totals]
            rows.add_row(line["time"].partition("+")[0], str(line["round"]), line["purpose"], *sent)
        rows.add_row("total bytes", "", "", *(f"{size:,}" for size in totals.values()))
        console.print(rows)


def status(
    folder: Annotated[Path | None, typer.Argument(metavar="STATE", help="the node's folder")] = None,
    address: Annotated[str, typer.Option(metavar="HOST:PORT", help="a loopback address")] = "127.0.0.1:9200",
) -> None:
    """Show on a page for this machine alone what its nodes do, with /metrics, /health and /status.json."""
    from fedfuse.core.loopback import serve
    from fedfuse.flower.status import default_state
    from fedfuse.flower.status_page import pages

    place = folder or default_state()
    if not place.is_dir():
        raise DataError(f"{place} is not a folder; name the one that the node has as --state")
    with serve(address, pages(place)) as url:
        print_facts(status=f"{url} until Ctrl-C", folder=place)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return


def add_to(app: typer.Typer) -> None:
    """Add the commands to ``fedfuse flower``."""
    for command in (check, receipt, status):
        app.command()(command)


def _origin(told: dict[str, str | float]) -> str:
    own = told.get("data") or told.get("loader")
    return f"from {own}" if own else "a share of the experiment's own data"
