"""The papers' tables and figures: as printed and as we measure them, side by side."""

from fedfuse.reproduce.cells import Cell, cells_of
from fedfuse.reproduce.claims import Claim, Verdict
from fedfuse.reproduce.entries import PAPERS, claims_of, load_entry, names
from fedfuse.reproduce.entry import SCALES, Entry, ScaleName
from fedfuse.reproduce.ledger import Ledger, ledger
from fedfuse.reproduce.store import Store

__all__ = [
    "PAPERS",
    "SCALES",
    "Cell",
    "Claim",
    "Entry",
    "Ledger",
    "ScaleName",
    "Store",
    "Verdict",
    "cells_of",
    "claims_of",
    "ledger",
    "load_entry",
    "names",
]
