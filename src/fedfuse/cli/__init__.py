"""The command line."""

from fedfuse.cli.app import main

__all__ = ["main"]
