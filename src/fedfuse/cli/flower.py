"""``fedfuse flower``: write a Flower app, make keys, let parties in, start a SuperLink and SuperNodes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from fedfuse.cli import flower_party
from fedfuse.cli.console import console, print_facts, say
from fedfuse.cli.flower_party import Client, Data, Loader, Own, Prototype, node_config
from fedfuse.core.errors import ConfigError
from fedfuse.core.log_lines import Form, stamp_output

app = typer.Typer(help="Run an experiment with real parties on Flower.", no_args_is_help=True)

flower_party.add_to(app)

Keys = Annotated[Path | None, typer.Option(help="folder that fedfuse flower keys wrote")]
ServerKeys = Annotated[Path, typer.Argument(metavar="KEYS", help="the folder of the SuperLink's keys")]
OperatorPort = Annotated[int, typer.Option(min=1, max=65535, help="the SuperLink's port for this machine alone")]
Insecure = Annotated[bool, typer.Option("--insecure", help="no TLS and no authentication, on 127.0.0.1 only")]
LogFormat = Annotated[Form | None, typer.Option(help="lines with a time and without colours (default: as they come)")]
LogFile = Annotated[Path | None, typer.Option(help="write them here instead; begun anew after 10 MB, five are kept")]


@app.callback()
def _quietly() -> None:
    """Flower's telemetry and its look for newer versions stay off unless they are asked for."""
    os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
    os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")


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


@app.command(name="hash")
def hash_app(
    bundle: Annotated[Path, typer.Argument(metavar="APP", help="the folder of a Flower app, or its bundle")],
    run_config: Annotated[str, typer.Option(help="what flwr run --run-config changes")] = "",
) -> None:
    """Print what a party accepts: the hash of an app's code and changed settings."""
    from fedfuse.flower.bundles import hash_of_app

    sys.stdout.write(f"{hash_of_app(bundle, run_config)}\n")


@app.command()
def keys(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to write")],
    nodes: Annotated[
        int, typer.Option(min=0, max=10_000, help="make parties' keys as well, to try things out on one machine")
    ] = 0,
    host: Annotated[
        list[str] | None, typer.Option(help="name or address of the SuperLink beside the loopback ones; repeatable")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="how long the certificate is valid")] = 365,
    renewed: Annotated[
        bool, typer.Option("--renew", help="a new certificate in a folder that has keys; ca.crt stays")
    ] = False,
) -> None:
    """Make the certificate of a SuperLink. Parties make their own keys."""
    from fedfuse.flower.deployment import OPERATOR, connection
    from fedfuse.flower.keys import make_keys, renew

    if renewed:
        if nodes:
            raise ConfigError("--renew makes no keys for nodes; a party makes its own with fedfuse flower key")
        end = renew(folder, host or [], days)
        print_facts(keys=folder, valid=f"until {end:%Y-%m-%d}; start the SuperLink again, parties keep their ca.crt")
        return
    make_keys(folder, nodes, host or [], days)
    print_facts(keys=folder, parties="each gets ca.crt, and makes a key of its own with fedfuse flower key")
    if nodes:
        print_facts(nodes=f"client-0 .. client-{nodes - 1}, to try things out: a real party's key never leaves it")
    console.print("\nFor flwr run on this machine, in ~/.flwr/config.toml:\n", highlight=False)
    sys.stdout.write(connection(f"{OPERATOR}:8001", folder))


@app.command()
def key(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="the folder to write it into")],
    client: Client,
) -> None:
    """Make a party's key, on the party's machine; only its .pub is given away."""
    from fedfuse.flower.keys import make_node_key, node_key

    mark = make_node_key(folder, client)
    path = folder / node_key(client)
    print_facts(key=f"{path}, which stays here", public=f"{path}.pub, for the operator", fingerprint=mark)


@app.command()
def register(
    keys: ServerKeys,
    public_key: Annotated[Path, typer.Argument(metavar="PUB", help="the .pub of the party's key")],
    client: Client,
    operator_port: OperatorPort = 8001,
) -> None:
    """Let a party in as this client, on the SuperLink's machine; a new key takes the place of the one before."""
    from fedfuse.flower.deployment import OPERATOR
    from fedfuse.flower.registration import register

    party = register(keys, public_key, client, f"{OPERATOR}:{operator_port}")
    print_facts(client=client, node=party.node, fingerprint=f"{party.key}, which the party's own must be")


@app.command()
def unregister(keys: ServerKeys, client: Client, operator_port: OperatorPort = 8001) -> None:
    """Let this client's key in no longer, on the SuperLink's machine."""
    from fedfuse.flower.deployment import OPERATOR
    from fedfuse.flower.registration import unregister

    party = unregister(keys, client, f"{OPERATOR}:{operator_port}")
    print_facts(client=client, fingerprint=f"{party.key}, which is let in no longer")


@app.command()
def superlink(
    keys: Keys = None,
    host: Annotated[str, typer.Option(help="address on which parties are answered")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="port on which parties are answered")] = 8000,
    operator_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="port for the operator, on 127.0.0.1 only (default: PORT + 1)")
    ] = None,
    database: Annotated[
        Path | None,
        typer.Option(help="file in which registered nodes outlive a restart (default: superlink.db beside the keys)"),
    ] = None,
    app_user: Annotated[
        str | None, typer.Option(help="who ServerApps run as, if root starts this: they cannot read the keys then")
    ] = None,
    log_format: LogFormat = None,
    log_file: LogFile = None,
    insecure: Insecure = False,
) -> None:
    """Start a SuperLink with TLS and node authentication, of which parties reach the fleet API only."""
    folder = _keys(keys, insecure)
    from fedfuse.flower.superlink import SuperLink, serve

    _announce(folder)
    _find_flowers_commands()
    stamp_output(log_format, log_file)
    serve(SuperLink(host, port, operator_port or port + 1, folder, database, app_user))


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
    budget: Annotated[
        float | None,
        typer.Option(metavar="EPSILON", help="what this party allows at most, where privacy is counted"),
    ] = None,
    wait: Annotated[float, typer.Option(min=0, help="seconds to ask again while the SuperLink refuses the node")] = 90,
    accept: Annotated[
        list[str] | None,
        typer.Option(metavar="HASH_OR_APP", help="an app that this node may run, or any; repeatable (default: none)"),
    ] = None,
    log_format: LogFormat = None,
    log_file: LogFile = None,
    insecure: Insecure = False,
) -> None:
    """Start the SuperNode of one party."""
    folder = _keys(keys, insecure)
    from fedfuse.flower.bundles import accepted_hashes
    from fedfuse.flower.deployment import supernode_command

    if budget is not None and not budget > 0:
        raise ConfigError(f"--budget {budget:g}: an epsilon is above 0")
    told = node_config(prototype, data, loader, own, state, budget)
    accepted = accepted_hashes(accept or [])
    command = supernode_command(superlink, port or 9100 + client, folder, client, told, accepted, wait)
    _announce(folder)
    if not accepted:
        say(["no app is accepted yet: the log of this node will say which hash to start it with"])
    stamp_output(log_format, log_file)
    _become(command)


def _keys(keys: Path | None, insecure: bool) -> Path | None:
    if (keys is None) != insecure:
        raise ConfigError("give --keys DIR (made by fedfuse flower keys), or --insecure to do without on this machine")
    return keys


def _announce(keys: Path | None) -> None:
    """Certificates whose end is near."""
    from fedfuse.flower.keys import ending

    say([] if keys is None else ending(keys))


def _become(command: list[str]) -> NoReturn:
    """Go on as this command."""
    _find_flowers_commands()
    os.execv(command[0], command)


def _find_flowers_commands() -> None:
    """Flower starts its own commands by name; they are beside this Python."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
