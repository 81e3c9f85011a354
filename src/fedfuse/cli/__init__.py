"""The command line."""

from fedfuse.cli.command_line import main

__all__ = ["main"]
