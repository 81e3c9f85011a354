"""A small entry that needs no files."""

from __future__ import annotations

from typing import Any

from fedfuse.plugins import Raw, checked
from fedfuse_papers.entry import Entry

EXPERIMENT: Raw = {
    "data": {"name": "blobs", "examples": 120, "validation": 0, "public": 0.2},
    "partition": {"kind": "iid", "clients": 2},
    "models": {"model": {"arch": "mlp", "hidden": [4]}},
    "federation": {"rounds": 2},
}


def make_entry(**changes: Any) -> Entry:
    raw = {
        "title": "A table",
        "experiment": EXPERIMENT,
        "axes": {
            "method": {"FedAvg": {"method": "fedavg"}, "FedProx": {"method": "fedprox"}},
            "alpha": {1: {}, 0.1: {"partition": {"kind": "dirichlet", "clients": 2, "alpha": 0.1}}},
        },
        "scales": {"paper": {"seeds": 3}, "small": {"seeds": 2}, "smoke": {}},
        **changes,
    }
    return checked(Entry, raw, "entry")
