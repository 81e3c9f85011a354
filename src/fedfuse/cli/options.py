"""Options that several commands have, with the same name and the same meaning in all of them."""

from __future__ import annotations

from typing import Annotated

import typer

Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="change a key, e.g. federation.rounds=20")
]
Overs = Annotated[
    list[str] | None,
    typer.Option("--over", metavar="KEY=VALUES", help="vary a key, e.g. partition.alpha=0.1,1.0"),
]
Estimated = Annotated[
    bool, typer.Option("--estimate", help="say what it would cost: time, memory, traffic, disk; run nothing")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="print nothing but errors")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="also print every event, a line each")]
Workers = Annotated[int | None, typer.Option(min=0, help="clients of a run at the same time, in processes; same bits")]
Jobs = Annotated[int, typer.Option(min=1, help="runs at the same time, each in its own process; same bits")]
Watched = Annotated[bool, typer.Option("--watch", help="serve a live page about it on this machine")]
Port = Annotated[int | None, typer.Option(min=0, max=65535, help="of the live page (default: a free one)")]
Opened = Annotated[bool, typer.Option("--open", help="open the live page in a browser")]
