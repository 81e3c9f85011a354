"""The one place where commands are registered: what each is called, where it is, and what it is for.

A command is a function for Typer, or a Typer app with several, in a file of its own that imports nothing heavy on top:
a command line imports the one that it names, ``fedfuse --help`` imports all of them. A new command is one line here.
"""

from __future__ import annotations

SECTIONS = {
    "Experiments": {
        "init": "fedfuse.cli.init:init",
        "run": "fedfuse.cli.run:run",
        "compare": "fedfuse.cli.compare:compare",
        "sweep": "fedfuse.cli.sweep:sweep",
        "privacy": "fedfuse.cli.privacy:privacy",
    },
    "Runs that are there": {
        "show": "fedfuse.cli.show:show",
        "table": "fedfuse.cli.table:table",
        "plot": "fedfuse.cli.plot:plot",
        "report": "fedfuse.cli.report:report",
        "watch": "fedfuse.cli.watch:watch",
        "audit": "fedfuse.cli.audit:audit",
        "receipt": "fedfuse.cli.receipt:app",
    },
    "Models": {
        "fuse": "fedfuse.cli.fuse:fuse",
        "export": "fedfuse.cli.export:export",
        "generator": "fedfuse.cli.generator:app",
    },
    "What there is": {
        "help": "fedfuse.cli.help_word:help_word",
        "methods": "fedfuse.cli.methods:methods",
        "datasets": "fedfuse.cli.datasets:datasets",
        "models": "fedfuse.cli.models:models",
        "parts": "fedfuse.cli.parts:parts",
        "keys": "fedfuse.cli.keys:keys",
        "presets": "fedfuse.cli.presets:presets",
        "schema": "fedfuse.cli.schema:schema",
        "completion": "fedfuse.cli.completion:completion",
    },
    "Operation": {
        "monitor": "fedfuse.cli.monitor:monitor",
        "bench": "fedfuse.cli.bench:bench",
        "doctor": "fedfuse.cli.doctor:doctor",
        "flower": "fedfuse.cli.flower:app",
    },
}
"""The addresses of our commands, by the heading that ``fedfuse --help`` has them under."""

COMMANDS = {name: address for section in SECTIONS.values() for name, address in section.items()}
