"""The classes of a fusion: the common list, and where each member's own classes lie in it.

Classes are the same if their names are, up to case, blanks, hyphens and underscores. A class map says what a member's
classes are called in common; several of its classes may become one ("tabby" and "tiger cat" are "cat"), which then has
the sum of their probabilities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from fedfuse.core.errors import ConfigError, shortened, unknown
from fedfuse.core.text import is_one_line
from fedfuse.fusing.members import About
from fedfuse.parts.voting import LabelSets

ClassMap = Mapping[str, str] | Sequence[str]
"""Common names of some of a member's classes, by its own names (or numbers, where it has none); or of all, in order."""


@dataclass(frozen=True)
class Classes:
    """The common list of classes, and what each member's columns are in it."""

    names: tuple[str, ...]
    members: tuple[tuple[str, ...], ...]
    """For each member, the common name of each of its columns."""
    nameless: tuple[str, ...] = ()
    """Members whose classes have no names, and are taken in the common order."""
    respelt: tuple[tuple[str, str, str, int], ...] = ()
    """Members that spell classes otherwise: who, the first of them as it has it and as it is here, how many others."""

    @cached_property
    def sets(self) -> LabelSets:
        """Which of the common classes each member knows, in the order of the list."""
        places = {name: place for place, name in enumerate(self.names)}
        known = [sorted({places[name] for name in own}) for own in self.members]
        return LabelSets(tuple(torch.tensor(columns) for columns in known), len(self.names))

    def heard(self, member: int, logits: Tensor) -> Tensor:
        """A member's logits in the order of the common list, its columns of one class put together."""
        columns: dict[str, list[int]] = {}
        for column, name in enumerate(self.members[member]):
            columns.setdefault(name, []).append(column)
        ordered = [columns[name] for name in self.names if name in columns]
        if len(ordered) == logits.shape[1]:
            return logits[:, [column for [column] in ordered]]
        return torch.stack([logits[:, some].logsumexp(dim=1) for some in ordered], dim=1)

    @property
    def remarks(self) -> Iterator[str]:
        """What somebody should know before anything is taught."""
        for member in self.nameless:
            yield f"{member} has no names of classes: they are taken in the common order"
        for member, theirs, ours, others in self.respelt:
            more = f", and {others} more alike" if others else ""
            yield (
                f"'{shortened(theirs)}' of {member} is taken for '{shortened(ours)}'{more}; map it to another name if "
                "it is not"
            )
        spelled: dict[str, str] = {}
        for name in self.names:
            other = spelled.setdefault(_key(name), name)
            if other != name:
                both = f"'{shortened(other)}' and '{shortened(name)}'"
                yield f"{both} are taken for two classes; map one to the other if not"
        if len(self.sets.groups) > 1:
            yield "some members share no class with others: how familiar an input looks to them says whom to believe"


def common_classes(
    members: Sequence[About],
    given: Sequence[str] | None = None,
    maps: Mapping[str, ClassMap] | None = None,
) -> Classes:
    """The classes given, or all that members know, in the order of the first member that has them.

    A member without names has the classes given, or those of the first member with names, if it has as many. Names that
    differ only in case, blanks, hyphens and underscores are the same, unless one and the same member tells them apart.
    """
    maps = maps or {}
    for name in maps:
        if name not in {about.name for about in members}:
            raise ConfigError(
                f"a class map is for an {unknown('member', str(name), [about.name for about in members])}"
            )
    named = {about.name: own for about in members if (own := _own_names(about, maps.get(about.name))) is not None}
    order = _in_order(given) if given is not None else _first(named.values()) or _numbers(members)
    if not order:
        raise ConfigError("a fusion needs at least one class")
    columns = [named.get(about.name) or _as_in(order, about, given is not None) for about in members]
    ours = spellings([order, *columns])
    said, columns = columns, [tuple(ours[name] for name in own) for own in columns]
    names = order if given is not None else _distinct(name for own in columns for name in own)
    _check(names, members, columns)
    nameless = [about.name for about in members if about.name not in named] if named or given is not None else []
    respelt = [_respelt(about.name, *two) for about, *two in zip(members, said, columns, strict=True)]
    return Classes(names, tuple(columns), tuple(nameless), tuple(one for one in respelt if one is not None))


def spellings(lists: Iterable[Iterable[str]]) -> dict[str, str]:
    """Every name as it is spelt first in any of the lists; as it is, if one list has two spellings of it."""
    spelt: dict[str, str] = {}
    apart, every = set[str](), list[str]()
    for one in lists:
        own: dict[str, str] = {}
        for name in one:
            if own.setdefault(_key(name), name) != name:
                apart.add(_key(name))
            spelt.setdefault(_key(name), name)
            every.append(name)
    return {name: name if _key(name) in apart else spelt[_key(name)] for name in every}


def _respelt(member: str, theirs: tuple[str, ...], ours: tuple[str, ...]) -> tuple[str, str, str, int] | None:
    changed = [(before, now) for before, now in zip(theirs, ours, strict=True) if before != now]
    return (member, *changed[0], len(changed) - 1) if changed else None


def _own_names(about: About, mapped: ClassMap | None) -> tuple[str, ...] | None:
    """What a member's columns are called in common; None if nobody says."""
    if mapped is None:
        if about.class_names is not None and (twice := _twice(about.class_names)) is not None:
            raise ConfigError(
                f"{about.name} has two classes named '{shortened(twice)}'; give a class map that tells them apart"
            )
        return about.class_names
    if not all(map(_is_name, _said_by(mapped))):
        raise ConfigError(
            f"the class map of {about.name} must be a list of names, or a mapping from its names to others"
        )
    if not isinstance(mapped, Mapping):
        if len(mapped) != about.classes:
            raise ConfigError(f"the class map of {about.name} names {len(mapped)} classes, but it has {about.classes}")
        return tuple(mapped)
    own = about.class_names or tuple(map(str, range(about.classes)))
    for name in mapped:
        if name not in own:
            raise ConfigError(f"the class map of {about.name} has an {unknown('class', name, own)}")
    if about.class_names is None and len(mapped) < len(own):
        left = next(name for name in own if name not in mapped)
        raise ConfigError(f"{about.name} has no names of classes, and its class map does not say what class {left} is")
    return tuple(mapped.get(name, name) for name in own)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value) and is_one_line(value)


def _said_by(mapped: object) -> Iterator[object]:
    """All that it says; one thing that is no name, if it is neither a mapping nor a list."""
    if isinstance(mapped, Mapping):
        yield from mapped.keys()
        yield from mapped.values()
    elif isinstance(mapped, Sequence) and not isinstance(mapped, str):
        yield from mapped
    else:
        yield None


def _in_order(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, Mapping) or not all(map(_is_name, _said_by(given))):
        raise ConfigError("the classes of a fusion must be a list of names")
    if (twice := _twice(given)) is not None:
        raise ConfigError(f"the classes of a fusion have '{shortened(twice)}' twice")
    return tuple(given)


def _twice(names: Sequence[str]) -> str | None:
    """The first name that is there a second time."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _numbers(members: Sequence[About]) -> tuple[str, ...]:
    """Names for classes that nobody has named."""
    counts = sorted({about.classes for about in members})
    if len(counts) > 1:
        raise ConfigError(
            f"no member has names of classes, and they have {' and '.join(map(str, counts))} of them; give the "
            "classes, and a class map for members that do not know them all"
        )
    return tuple(map(str, range(counts[0])))


def _as_in(order: tuple[str, ...], about: About, is_given: bool) -> tuple[str, ...]:
    if about.classes != len(order):
        whose = "that were given" if is_given else "of the first member that has names"
        raise ConfigError(
            f"{about.name} has {about.classes} classes without names, which are not the {len(order)} {whose}; give a "
            "class map for it"
        )
    return order


def _check(names: tuple[str, ...], members: Sequence[About], columns: Sequence[tuple[str, ...]]) -> None:
    listed, known = set(names), {name for own in columns for name in own}
    for about, own in zip(members, columns, strict=True):
        for name in own:
            if name not in listed:
                raise ConfigError(
                    f"{about.name} knows an {unknown('class', name, names)}; add it to the classes, or map it to one "
                    "of them"
                )
    for name in names:
        if name not in known:
            raise ConfigError(f"no member knows the {unknown('class', name, known)}")


def _key(name: str) -> str:
    return " ".join(name.casefold().replace("_", " ").replace("-", " ").split())


def _first(lists: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return _distinct(next(iter(lists), ()))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
