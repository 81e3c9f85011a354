"""Options that several commands have, with the same name and the same meaning in all of them."""

from __future__ import annotations

from typing import Annotated

import typer

Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="change a key, e.g. federation.rounds=20")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="print nothing but errors")]
