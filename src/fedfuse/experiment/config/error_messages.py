"""Validation errors in plain words: the key, its value, what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedfuse.catalogue.details import CHOOSERS
from fedfuse.catalogue.keys import every_place, suggested
from fedfuse.core.errors import ConfigError, UnknownKeyError, did_you_mean, shortened, suggest


def refusal(error: Mapping[str, Any], raw: Any, section: tuple[str, ...], where: str) -> ConfigError:
    """One pydantic error about ``raw``, which is a section of what ``where`` holds, as a sentence."""
    address = (*section, *_address(error, raw))
    cause = error.get("ctx", {}).get("error")
    if isinstance(cause, UnknownKeyError):
        near = suggested(cause.key, address, cause.known)
        return UnknownKeyError(cause.key, cause.known, address, f"{where}: ", near)
    meant = _other_name(address, raw) if error["type"] == "union_tag_not_found" else ""
    return ConfigError(f"{where}: {_sentence(error, '.'.join(address))}{meant}")


def _other_name(address: tuple[str, ...], raw: Any) -> str:
    """Of a model that is none yet, the one that was meant: ``models.mpl.hidden=[8]`` beside a model ``mlp``."""
    models = raw.get("models") if isinstance(raw, Mapping) and address[:1] == ("models",) else None
    return did_you_mean(address[1], models.keys() - {address[1]}) if isinstance(models, Mapping) else ""


def _sentence(error: Mapping[str, Any], address: str) -> str:
    at = f"{address}: " if address else ""
    context = error.get("ctx", {})
    if error["type"] == "missing":
        return f"{address} is missing"
    if error["type"] == "value_error":
        return f"{at}{shortened(str(context['error']), 1000)}"
    if error["type"] == "union_tag_invalid":
        known = [tag.strip().strip("'") for tag in str(context["expected_tags"]).split(",")]
        return (
            f"{at}unknown {context['discriminator'].strip(chr(39))} '{shortened(context['tag'])}'"
            f"{suggest(context['tag'], known)}"
        )
    if error["type"] == "union_tag_not_found":
        return f"{at}{context['discriminator']} is missing".replace("'", "")
    if error["type"] == "literal_error":
        return f"{address} is {in_short(error['input'])}, but should be {context['expected']}"
    wanted = _wanted(error)
    return f"{address} is {in_short(error['input'])}, but should be {wanted}{_as_mapping(error, address, wanted)}"


def _as_mapping(error: Mapping[str, Any], address: str, wanted: str) -> str:
    """What was meant by a word in the place of a section that has a kind: ``partition: iid``."""
    if wanted != "a mapping" or not isinstance(error["input"], str):
        return ""
    section = "models.NAME" if address.startswith("models.") else address
    chooser = next((key for key in (*CHOOSERS, "name") if f"{section}.{key}" in every_place()), None)
    if chooser is None:
        return ""
    return f" (did you mean {address.rpartition('.')[2]}: {{{chooser}: {shortened(error['input'], 40)}}}?)"


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "string": "text",
    "tuple": "a list",
    "list": "a list",
    "dict": "a mapping",
    "model": "a mapping",
}


def _wanted(error: Mapping[str, Any]) -> str:
    """What the value should have been."""
    kind, context = str(error["type"]), error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        return f"text that matches {context['pattern']}"
    if kind == "string_too_long":
        return f"text of at most {context['max_length']} characters"
    if kind == "too_long":
        return f"a list of at most {context['max_length']}"
    if kind.endswith(("_type", "_parsing", "_from_float")):
        return _TYPES.get(kind.split("_")[0], kind)
    return str(error["msg"]).removeprefix("Input should be ").removeprefix("Input should ")


def _address(error: Mapping[str, Any], raw: Any) -> list[str]:
    """The error's location in the user's own words: without the union tags that pydantic puts between keys."""
    address, node = [], raw
    for step in error["loc"]:
        keys = range(len(node)) if isinstance(node, list | tuple) else node if isinstance(node, Mapping) else ()
        if step in keys:
            address.append(shortened(str(step)))
            node = node[step]
    if error["type"] == "missing":
        address.append(str(error["loc"][-1]))
    return address


def in_short(value: Any) -> str:
    """A value as a sentence shows it."""
    return shortened(repr(value), 60)
