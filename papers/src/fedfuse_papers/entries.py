"""The entry files and claims inside the package: experiments/<paper>/<entry>.yaml.

``setting.yaml`` holds what all entries of a paper share and lies under each of them; ``claims.yaml`` what the paper
says about its own numbers.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from fedfuse import ConfigError
from fedfuse.plugins import Raw, checked, overlay, unknown
from fedfuse_papers.claims import Claim
from fedfuse_papers.entry import Entry

PAPERS = {
    "feddf": "Lin et al., Ensemble Distillation for Robust Model Fusion in Federated Learning, NeurIPS 2020",
    "fedbe": "Chen and Chao, FedBE: Making Bayesian Model Ensemble Applicable to Federated Learning, ICLR 2021",
    "fedgkd": "Yao et al., Local-Global Knowledge Distillation in Heterogeneous Federated Learning, 2021",
    "thesis": "Eriksson, Weighted Ensemble Distillation in Federated Learning with Non-IID Data, thesis, Chalmers",
}
SHARED = ("setting", "claims")


def names() -> list[str]:
    """All entries as paper/entry, tables before figures, in the order of their numbers."""
    return [f"{paper}/{name}" for paper in PAPERS for name in sorted(_files(paper), key=_order)]


def load_entry(name: str) -> Entry:
    """An entry by its name, for example feddf/table2."""
    if name not in names():
        raise ConfigError(unknown("table or figure", name, names()))
    paper, own = name.split("/")
    raw = _read(paper, own)
    for key in raw:
        if key not in Entry.model_fields:
            raise ConfigError(f"{name}: {unknown('key', str(key), Entry.model_fields)}")
    return checked(Entry, overlay(_read(paper, "setting"), raw), name)


def claims_of(name: str) -> tuple[Claim, ...]:
    """What the paper says about the numbers of an entry."""
    paper, own = name.split("/")
    entry = load_entry(name)
    claims = [checked(Claim, raw, f"{paper}/claims {own}") for raw in _read(paper, "claims").get(own, [])]
    for claim in claims:
        claim.check(entry, f"{paper}/claims {own}")
    return tuple(claims)


def _files(paper: str) -> list[str]:
    folder = files(__package__) / "experiments" / paper
    found = [file.name.removesuffix(".yaml") for file in folder.iterdir() if file.name.endswith(".yaml")]
    return [name for name in found if name not in SHARED]


def _order(name: str) -> tuple[bool, list[int], str]:
    digits = "".join(letter if letter.isdigit() else " " for letter in name).split()
    return name.startswith("figure"), [int(number) for number in digits], name


@lru_cache
def _read(paper: str, name: str) -> Raw:
    text = (files(__package__) / "experiments" / paper / f"{name}.yaml").read_text(encoding="utf-8")
    raw: Any = yaml.safe_load(text)
    return raw or {}
