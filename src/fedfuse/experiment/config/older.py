"""Keys of a method as they were before version 0.2: they are still read, with a note that says what to write now."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from fedfuse.core.errors import OlderKeyWarning

Raw = dict[str, Any]

LINKS = {"half": "type", "one_bit": "prototypes"}
"""Exchanges that are links of an upload now, and the key that only they had."""


def renewed(method: Mapping[str, Any]) -> Raw:
    """A method's section, or changes to one, in the keys of today."""
    result = {key: value for key, value in method.items() if key != "exchange"}
    if "exchange" in method:
        _lay_under(result, _exchange(method["exchange"]), "exchange")
    fuse = result.get("fuse")
    if isinstance(fuse, Mapping) and "weighting" in fuse:
        result["fuse"] = {key: value for key, value in fuse.items() if key != "weighting"}
        weighting = fuse["weighting"]
        _lay_under(result, {} if weighting == "testimony" else {"scores": {"kind": weighting}}, "fuse.weighting")
    return result


def _lay_under(result: Raw, renewed_keys: Raw, key: str) -> None:
    """What the old key says, unless a new one says it too."""
    for name, value in renewed_keys.items():
        result.setdefault(name, value)
    now = ", ".join(f"method.{name}" for name in renewed_keys) or "what method.scores say already"
    warnings.warn(f"method.{key} is now {now}; the old key is still read", OlderKeyWarning, stacklevel=2)


def _exchange(exchange: Any) -> Raw:
    if not isinstance(exchange, Mapping):
        return {"protocol": exchange}
    kind, rest = exchange.get("kind"), {key: value for key, value in exchange.items() if key != "kind"}
    if kind == "pooled":
        return {"pooled": True}
    if kind in LINKS:
        return {"protocol": {"kind": "weights"}, "upload": [{"kind": kind, **rest}]}
    if kind == "scored_weights":
        return {"protocol": {"kind": "weights"}, "scores": {"kind": "certainty", **rest.get("weighting", {})}}
    return _same_kind(kind, rest)


def _same_kind(kind: str | None, rest: Raw) -> Raw:
    """An exchange that is a protocol of the same kind now, or changes to it; some of its keys went elsewhere."""
    protocol = {} if kind is None else {"kind": kind}
    result: Raw = {}
    for link, key in LINKS.items():
        if key in rest:
            result["upload"] = [{"kind": link, key: rest.pop(key)}]
    for key, value in rest.items():
        if key == "weighting":
            result["scores"] = value
        elif key == "bits_up":
            result["upload"] = [] if value is None else [{"kind": "soft_labels", "bits": value}]
        elif key == "digest":
            protocol["distillation"] = _distillation(value)
        else:
            protocol[key] = value
    if kind == "predictions":
        result.setdefault("scores", {"kind": "examples"})
    return {**({"protocol": protocol} if protocol else {}), **result}


def _distillation(digest: Any) -> Any:
    if isinstance(digest, Mapping) and digest.get("keep") == "digested":
        return {**digest, "keep": "distilled"}
    return digest
