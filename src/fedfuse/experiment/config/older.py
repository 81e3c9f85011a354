"""Keys of a method as they were at first: they are still read, with a note that says what to write now.

``exchange`` was one of eight kinds; it is a protocol, links of an upload, scores, or ``pooled`` now. ``fuse.weighting``
is ``scores``.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from fedfuse.core.errors import OlderKeyWarning

Raw = dict[str, Any]

LINKS = {"half": "type", "one_bit": "prototypes"}
"""Exchanges that are links of an upload now, and the key that only they had."""
PLAIN: Raw = {"protocol": {"kind": "weights"}, "upload": [], "scores": {"kind": "uniform"}, "pooled": False}
"""What an exchange of another kind took away from the method that it changed."""
TESTIMONY, TESTIFIED = "testimony", ("certainty", "labels", "reconstruction")


def renewed(changes: Mapping[str, Any], base: Mapping[str, Any]) -> Raw:
    """Changes to a method in the keys of today; ``base`` is the recipe that they change."""
    result = {key: value for key, value in changes.items() if key != "exchange"}
    weighting = _weighting(result, base)
    if "exchange" in changes:
        _lay_under(result, _exchange(changes["exchange"], base, weighting == TESTIMONY), "exchange")
    if _says_weighting(result):
        result["fuse"] = {key: value for key, value in result["fuse"].items() if key != "weighting"}
        _lay_under(result, {} if weighting == TESTIMONY else {"scores": {"kind": weighting}}, "fuse.weighting")
    return result


def _lay_under(result: Raw, keys: Raw, older: str) -> None:
    """What the old key says, unless a new one says it too."""
    for name, value in keys.items():
        result.setdefault(name, value)
    now = ", ".join(f"method.{name}" for name in keys) or "what method.scores say already"
    warnings.warn(f"method.{older} is now {now}; the old key is still read", OlderKeyWarning, stacklevel=2)


def _says_weighting(method: Mapping[str, Any]) -> bool:
    return isinstance(method.get("fuse"), Mapping) and "weighting" in method["fuse"]


def _weighting(changes: Mapping[str, Any], base: Mapping[str, Any]) -> Any:
    """How teachers were weighed: as said, or as in the method that is changed."""
    if _says_weighting(changes):
        return changes["fuse"]["weighting"]
    return TESTIMONY if _kind_of(base) == "scored_weights" else None


def _kind_of(base: Mapping[str, Any]) -> str:
    """The exchange that a recipe of today had at first."""
    if base["pooled"]:
        return "pooled"
    for link in base["upload"]:
        if _named(link) in LINKS:
            return _named(link)
    protocol = _named(base["protocol"])
    return "scored_weights" if protocol == "weights" and _named(base["scores"]) in TESTIFIED else protocol


def _named(part: Any) -> str:
    """The kind of a part that is given by its keys, as an object, or by its name."""
    return str(part["kind"] if isinstance(part, Mapping) else getattr(part, "kind", part))


def _exchange(exchange: Any, base: Mapping[str, Any], testimony: bool) -> Raw:
    if not isinstance(exchange, Mapping) or not isinstance(exchange.get("kind", ""), str):
        return {"protocol": exchange}
    kind, rest = exchange.get("kind"), {key: value for key, value in exchange.items() if key != "kind"}
    if kind is None or kind == _kind_of(base):
        return _changed(rest, testimony or _kind_of(base) != "scored_weights")
    if kind == "pooled":
        return {**PLAIN, "pooled": True}
    if kind in LINKS:
        return {**PLAIN, "upload": [{"kind": kind, **rest}]}
    if kind == "scored_weights":
        weighting = rest.get("weighting", {})
        scores = {"kind": "certainty", **weighting} if isinstance(weighting, Mapping) else weighting
        return {**PLAIN, **({"scores": scores} if testimony else {})}
    changed = _changed(rest, testimony=True)
    scores = {"scores": {"kind": "examples"}} if kind == "predictions" else {}
    return {**PLAIN, **scores, **changed, "protocol": {"kind": kind, **changed.get("protocol", {})}}


def _changed(rest: Raw, testimony: bool) -> Raw:
    """Keys of an exchange that stays of its kind, where they are now."""
    protocol: Raw = {}
    result: Raw = {}
    for key, value in rest.items():
        if key == "weighting":
            result |= {"scores": value} if testimony else {}
        elif key == "bits_up":
            result["upload"] = [] if value is None else [{"kind": "soft_labels", "bits": value}]
        elif key == "digest":
            protocol["distillation"] = _distillation(value)
        elif link := next((link for link, own in LINKS.items() if own == key), None):
            result["upload"] = [{"kind": link, key: value}]
        else:
            protocol[key] = value
    return {**({"protocol": protocol} if protocol else {}), **result}


def _distillation(digest: Any) -> Any:
    if isinstance(digest, Mapping) and digest.get("keep") == "digested":
        return {**digest, "keep": "distilled"}
    return digest
