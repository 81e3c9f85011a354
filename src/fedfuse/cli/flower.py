"""``fedfuse flower``: write a Flower app, make its keys, start its SuperLink and SuperNodes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from fedfuse.cli import flower_party
from fedfuse.cli.console import console, print_facts
from fedfuse.cli.flower_party import Client, Data, Loader, Own, Prototype, node_config
from fedfuse.core.errors import ConfigError, FedfuseError

app = typer.Typer(help="Run an experiment with real parties on Flower.", no_args_is_help=True)

flower_party.add_to(app)

Keys = Annotated[Path | None, typer.Option(help="folder that fedfuse flower keys wrote")]
Insecure = Annotated[bool, typer.Option("--insecure", help="no TLS and no authentication, on 127.0.0.1 only")]


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to write, which names the app")],
    experiment: Annotated[
        str | None, typer.Option(metavar="FILE_OR_PRESET", help="its experiment (default: an example on digits)")
    ] = None,
) -> None:
    """Write a Flower app around an experiment."""
    from fedfuse.flower.project import new_project

    package = new_project(folder, experiment)
    print_facts(app=folder, file=package / "experiment.yaml")


@app.command()
def keys(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to write")],
    nodes: Annotated[int, typer.Option(min=1, max=10_000, help="how many parties get a key")],
    host: Annotated[
        list[str] | None, typer.Option(help="name or address of the SuperLink beside the loopback ones; repeatable")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="how long the certificate is valid")] = 365,
) -> None:
    """Make the certificate of a SuperLink and one key per party."""
    from fedfuse.flower.deployment import connection
    from fedfuse.flower.keys import make_keys

    make_keys(folder, nodes, host or [], days)
    print_facts(keys=folder, nodes=f"client-0 .. client-{nodes - 1}; each party gets its own and ca.crt")
    console.print("\nFor flwr run, in ~/.flwr/config.toml:\n", highlight=False)
    sys.stdout.write(connection(f"{host[0] if host else '127.0.0.1'}:8000", folder))


@app.command()
def superlink(
    keys: Keys = None,
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8000,
    database: Annotated[
        Path | None,
        typer.Option(help="file in which registered nodes outlive a restart (default: superlink.db beside the keys)"),
    ] = None,
    insecure: Insecure = False,
) -> None:
    """Start a SuperLink with TLS and node authentication."""
    from fedfuse.flower.deployment import superlink_command

    _become(superlink_command(host, port, _keys(keys, insecure), database))


@app.command()
def supernode(
    client: Client,
    keys: Keys = None,
    superlink: Annotated[str, typer.Option(metavar="HOST:PORT", help="where the SuperLink is")] = "127.0.0.1:8000",
    port: Annotated[int | None, typer.Option(help="for this node's own processes (default: 9100 + client)")] = None,
    prototype: Prototype = None,
    data: Data = None,
    loader: Loader = None,
    own: Own = None,
    state: Annotated[Path | None, typer.Option(help="folder for the client's state, receipts and status")] = None,
    insecure: Insecure = False,
) -> None:
    """Start the SuperNode of one party."""
    from fedfuse.flower.deployment import supernode_command

    told = node_config(prototype, data, loader, own, state)
    _become(supernode_command(superlink, port or 9100 + client, _keys(keys, insecure), client, told))


def _keys(keys: Path | None, insecure: bool) -> Path | None:
    if (keys is None) != insecure:
        raise ConfigError("give --keys DIR (made by fedfuse flower keys), or --insecure to do without on this machine")
    return keys


def _become(command: list[str]) -> NoReturn:
    """Go on as Flower's own command, which is beside this Python."""
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    program = folder / command[0]
    if not program.exists():
        raise FedfuseError(f"{program} is not there; pip install 'fedfuse[flower]' in this environment")
    os.execve(program, command, environment)
