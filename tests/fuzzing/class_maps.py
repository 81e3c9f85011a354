"""Names of classes, maps and lists of them, and the words of the command that say so."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from fedfuse.cli.fuse import _about, _assigned, _maps
from fedfuse.fusing.classes import common_classes
from fedfuse.fusing.plan import FusePlan
from tests.fusing.members_to_ask import Matrix
from tests.fuzzing.mutation import text_of, value_of

HONEST: list[dict[str, Any]] = [
    {
        "names": [["cat", "dog"], ["Cat", "owl", "ant"], None],
        "given": None,
        "maps": {"m1": {"ant": "dog"}, "m2": ["cat", "owl"]},
        "words": ["m1:ant=dog", "m0:cat=lion"],
        "about": ["m1.arch=resnet20", "m0.shape=[3, 8, 8]"],
        "set": ["steps=10", "merge={density: 0.5}", "start=ties", "weights=[1, 2]"],
        "method": "auto",
    },
    {
        "names": [["a", "b"], ["b", "c"]],
        "given": ["c", "b", "a"],
        "maps": {},
        "words": [],
        "about": [],
        "set": [],
        "method": "ties",
    },
]


def honest() -> list[dict[str, Any]]:
    return [{**HONEST[0], "set": HONEST[0]["set"][:1]}, HONEST[1]]


def mutate(rng: Random, case: dict[str, Any]) -> dict[str, Any]:
    if rng.random() < 0.5:
        return value_of(rng, case, (["cat"] * 3, {"cat": "dog", "dog": "cat"}, "cat", "feded", [0.0, -1.0]))
    part = rng.choice(("words", "about", "set"))
    words = rng.sample(HONEST[0][part], rng.randint(1, len(HONEST[0][part])))
    return {**case, part: [text_of(rng, word, ("=", ":", ".", "m1", "{", "[")) for word in words]}


def read(case: Any) -> None:
    if not isinstance(case, dict):
        return
    names = case.get("names")
    members = []
    for place, own in enumerate(names if isinstance(names, list) else []):
        sound = isinstance(own, list | tuple) and own and all(isinstance(name, str) for name in own)
        about = Matrix(f"m{place}", None, len(own) if sound else 2).about
        members.append(replace(about, class_names=tuple(own)) if sound else about)
    for said in (case.get("words"), case.get("about"), case.get("set")):
        if not isinstance(said, list | tuple) or not all(isinstance(word, str) for word in said):
            return
    _maps(case["words"])
    _about(case["about"])
    if isinstance(case.get("method"), str):
        FusePlan.of(case["method"], _assigned(case["set"]))
    maps = case.get("maps")
    if members:
        classes = common_classes(members, case.get("given"), maps if isinstance(maps, dict) else {})
        assert all(classes.remarks)
