"""What a package that adds commands may use besides the front door, ``import fedfuse``.

A command is an entry point of the group ``fedfuse.commands``: its name, and a function for Typer or a Typer app. Import
this module inside the command, not above it: ``fedfuse --help`` imports every command's own module.
"""

from fedfuse.cli.batch import batch_progress
from fedfuse.cli.console import console, print_facts
from fedfuse.cli.tables import table
from fedfuse.cli.words import go_on_with, seeds_of
from fedfuse.core.errors import unknown
from fedfuse.core.files import write_text
from fedfuse.core.part import Settings
from fedfuse.core.plain_json import dumps
from fedfuse.experiment.config import Raw, checked
from fedfuse.experiment.config.schema import overlay

__all__ = [
    "Raw",
    "Settings",
    "batch_progress",
    "checked",
    "console",
    "dumps",
    "go_on_with",
    "overlay",
    "print_facts",
    "seeds_of",
    "table",
    "unknown",
    "write_text",
]
