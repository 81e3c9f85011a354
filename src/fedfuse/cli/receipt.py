"""``fedfuse receipt``: what left a party, as it can be shown and checked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Show and check what left a party, line by line.")
File = Annotated[Path, typer.Argument(metavar="FILE", help="receipts of a party's node, or of a simulated client")]


@app.command()
def verify(
    file: File,
    key: Annotated[str | None, typer.Option(metavar="PUB", help="the party's key, or a file that has it")] = None,
    head: Annotated[str | None, typer.Option(metavar="SHA256", help="of an earlier check: is it still there?")] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="RUN", help="the server's run: is there a line for all it heard?")
    ] = None,
) -> None:
    """Check that no line was changed, taken out, moved or forged, and say what is not known."""
    from fedfuse.cli.console import print_facts, say
    from fedfuse.core.receipt_lines import verify_receipts
    from fedfuse.experiment.receipts import check_heard

    found = verify_receipts(file, _key(key), head)
    heard = check_heard(file, run) if run is not None else None
    print_facts(
        lines=f"{found.lines:,}, each follows the one before; {found.signed:,} signed",
        client=", ".join(map(str, found.clients)),
        sent=", ".join(f"{name} {size:,} bytes" for name, size in found.total.items() if size),
        key=", ".join(found.keys) or "none: anybody who has the file could have written it",
        head=found.head,
    )
    if heard is not None:
        print_facts(run=f"all {heard:,} answers that the server has heard have a line")
    say(found.cautions)
    if head is None and run is None:
        say(["lines that are missing at the end do not show by themselves; compare with --head or --run"])


@app.command()
def show(file: File) -> None:
    """Show what left, round by round."""
    from fedfuse.cli.console import print_sheet
    from fedfuse.experiment.receipts import receipts_sheet

    print_sheet(receipts_sheet(file))


@app.command()
def write(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="run folder of a simulation")],
    out: Annotated[Path, typer.Option(help="folder for a file of each client")],
) -> None:
    """Write a receipt of every client of a simulated run, from the run's log. Nobody signs it."""
    from fedfuse.cli.console import print_facts
    from fedfuse.experiment.receipts import write_receipts

    print_facts(files=f"{len(write_receipts(run, out)):,} in {out}")


def _key(given: str | None) -> str | None:
    from fedfuse.core.errors import ConfigError

    if given is None:
        return None
    path = Path(given)
    try:
        word = path.read_text(encoding="ascii").strip() if path.is_file() else given
        if len(bytes.fromhex(word)) == 32:
            return word.lower()
    except (OSError, ValueError):
        pass
    raise ConfigError(f"--key {given}: write the 64 hexadecimal signs of receipts.pub, or name that file")
