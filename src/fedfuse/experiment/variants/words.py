"""What variants are called: ``alpha=0.1``, in tables and in the names of folders."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import ExperimentConfig, validate
from fedfuse.experiment.config.changes import Address, Change, apply
from fedfuse.experiment.config.schema import CHOOSERS, LONGEST_NAME, Raw

LONGEST_VALUE, LONGEST_WORDS = 24, 48
IN_THE_NAME = (("name",), ("seed",), ("method", "name"))
"""What the name of a run folder says anyway."""
LENGTH = ("federation", "rounds")
"""A longer run goes on where a shorter one ended, in the same folder."""
UNFIT = re.compile(r"[^A-Za-z0-9._+-]+")
"""What names of files had better not have."""


def words_of(changes: Sequence[Change], among: Collection[Address] | None = None) -> str:
    """Changes as one word: ``alpha=0.1-epochs=2``. Keys are as short as they can be ``among`` all that are changed."""
    keys = list(dict.fromkeys(key_of(address) for address in (among or [change.address for change in changes])))
    short = dict(zip(keys, short_keys(keys), strict=True))
    return "-".join(_word(short[key_of(change.address)], change.value) for change in changes)


def named(config: ExperimentConfig, changes: Sequence[Change], among: Collection[Address]) -> ExperimentConfig:
    """The experiment under the name of a variant: what its method has otherwise is said of the method."""
    telling = [change for change in changes if change.address not in IN_THE_NAME]
    of_method = [change for change in telling if change.address[0] in ("method", "methods")]
    others = [change for change in telling if change not in of_method]
    if others:
        config = config.model_copy(update={"name": _joined(config.name, words_of(others, among))})
    if of_method:
        label = _joined(config.method.called, words_of(of_method, among))
        config = config.model_copy(update={"method": config.method.model_copy(update={"label": label})})
    return config


def folder_words(raw: Mapping[str, Any], changes: Sequence[Change], config: ExperimentConfig) -> list[Change]:
    """Of the changes on top of a file, those that a folder should be named by: they make it another experiment."""
    named_anyway = [change for change in changes if change.address in IN_THE_NAME]
    others = [change for change in changes if change.address not in (*IN_THE_NAME, LENGTH)]
    if not others:
        return []
    try:
        before = validate(apply(raw, named_anyway)).identity()
    except ConfigError:  # the file alone is no experiment
        return others
    different = set(differences(before, config.identity()))
    return [change for change in others if any(_meet(_own(change.address, config), one) for one in different)]


def differences(before: Raw, now: Raw, at: Address = ()) -> Iterator[Address]:
    """The keys in which two identities differ, as deep as both have keys."""
    for key in before.keys() | now.keys():
        one, other = before.get(key), now.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from differences(one, other, (*at, key))
        elif one != other:
            yield (*at, key)


def _word(key: str, value: Any) -> str:
    return key if value is True else f"{key}={value_word(value)}"


def value_word(value: Any) -> str:
    """A value in a few letters that any file's name may have."""
    word = UNFIT.sub("_", _plain_word(value)).strip("_")
    return word if word and len(word) <= LONGEST_VALUE else _digest(value)


def key_of(address: Address) -> Address:
    """What is varied: of ``method.merge.kind`` it is the merge."""
    return address[:-1] if len(address) > 1 and address[-1] in CHOOSERS else address


def _plain_word(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    if isinstance(value, Mapping):
        chosen = [_plain_word(value[key]) for key in CHOOSERS if key in value]
        return "+".join([*chosen, *(f"{key}.{_plain_word(value[key])}" for key in value if key not in CHOOSERS)])
    if isinstance(value, list | tuple):
        return "+".join(map(_plain_word, value)) or "none"
    return str(value)


def short_keys(keys: Sequence[Address]) -> list[str]:
    """Keys as short as they can be beside each other."""
    return [_short(key, keys) for key in keys]


def _short(key: Address, keys: Sequence[Address]) -> str:
    """The last names of a key that no other key ends with."""
    others = [other for other in keys if other != key]
    for length in range(1, len(key) + 1):
        if not any(other[-length:] == key[-length:] for other in others):
            return UNFIT.sub("_", ".".join(key[-length:]))
    return UNFIT.sub("_", ".".join(key))


def _joined(name: str, words: str) -> str:
    whole = f"{name}-{words}"
    if len(whole.encode()) <= LONGEST_NAME:
        return whole
    digest = _digest(whole)
    return f"{whole.encode()[: LONGEST_NAME - len(digest) - 1].decode(errors='ignore')}-{digest}"


def shortened_words(words: str) -> str:
    """What a folder's name has room for beside the names of experiment and method."""
    return words if len(words) <= LONGEST_WORDS else f"{words[: LONGEST_WORDS - 9]}-{_digest(words)}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:8]


def _own(address: Address, config: ExperimentConfig) -> Address:
    """Where the identity has what is said about the method that runs."""
    is_own = address[:2] == ("methods", config.method.name)
    return ("method", *address[2:]) if is_own else address


def _meet(one: Address, other: Address) -> bool:
    """Whether one key is the other, or lies below it."""
    return all(mine == theirs for mine, theirs in zip(one, other, strict=False))
