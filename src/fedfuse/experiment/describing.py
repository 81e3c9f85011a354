"""What the code says about its own keys and parts, as the plain values of ``catalogue/details.py``."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from fedfuse.catalogue.details import CHOOSERS, KeyRow, PartRow
from fedfuse.core.choice import OneIn, OneOf
from fedfuse.core.part import Part, Settings

Kinds = tuple[type[Settings], ...]
"""The classes of ours that fill a slot."""
BEYOND = 2**63
"""A bound that nobody reaches is not worth a word."""
_BOUNDS = (("gt", "above"), ("ge", "from"), ("lt", "below"), ("le", "to"))
NAMES = ("Adam", "Python")
_NAMES = {int: "whole number", float: "number", bool: "true or false", str: "text", NoneType: "null", Any: "anything"}
_PLURALS = {"whole number": "whole numbers", "number": "numbers", "text": "texts"}


def keys_of(settings: type[Settings], slots: Mapping[Kinds, str]) -> dict[str, KeyRow]:
    """All keys of a section or a part but the one that chooses it, in the order in which they are declared.

    ``slots`` has the names of slots, by what fills them.
    """
    return {
        name: key_row(field, slots)
        for name, field in settings.model_fields.items()
        if not (name in CHOOSERS and get_origin(field.annotation) is Literal)
    }


def key_row(field: FieldInfo, slots: Mapping[Kinds, str]) -> KeyRow:
    """One key."""
    kinds, section, several = kinds_in(field), section_in(field), _holds_several(field)
    described = field.description or (section.__doc__ or "" if section else "").split("\n")[0]
    return KeyRow(
        meaning=_decapitalised(_plain(described)),
        allowed=allowed(field),
        default=_default(field),
        required=field.is_required(),
        choices=() if several else _choices(field.annotation),
        slot=slots.get(kinds, ""),
        section=section.__name__ if section and not kinds else "",
        several=several,
    )


def part_row(part: type[Settings], slots: Mapping[Kinds, str]) -> PartRow:
    """One kind of a slot."""
    meaning, _, rest = inspect.cleandoc(part.__doc__ or "").partition("\n\n")
    module = sys.modules[part.__module__]
    own = [value for value in vars(module).values() if is_kind(value) and value.__module__ == part.__module__]
    above = inspect.cleandoc(module.__doc__ or "") if own == [part] else ""
    text = "\n\n".join(filter(None, (_plain_marks(above), _plain_marks(rest))))
    return PartRow(_plain(" ".join(meaning.split())), text, keys_of(part, slots))


def chooser_of(part: type[Settings]) -> str:
    """The key that says which part it is."""
    return next(name for name in CHOOSERS if name in part.model_fields)


def kinds_of(part: type[Settings]) -> tuple[str, ...]:
    """The values of that key which mean this one."""
    return get_args(part.model_fields[chooser_of(part)].annotation)


def kinds_in(field: FieldInfo) -> Kinds:
    """The classes of ours that a key takes by their kind."""
    return next(_kinds(field.annotation, tuple(field.metadata)), (None, ()))[1]


def base_in(field: FieldInfo) -> type[Part] | None:
    """What a class of one's own must be derived from to stand there; None where none can."""
    return next(_kinds(field.annotation, tuple(field.metadata)), (None, ()))[0]


def section_in(field: FieldInfo) -> type[Settings] | None:
    """The class of the section that lies below a key."""
    return next(iter(_sections(field.annotation)), None)


def allowed(field: FieldInfo) -> str:
    """What a key may be, in words."""
    several = [_of_type(one, field.metadata) for one in _alternatives(field.annotation)]
    return _joined([word for word in dict.fromkeys(several) if word])


def _kinds(annotation: Any, metadata: tuple[Any, ...]) -> Iterator[tuple[type[Part] | None, Kinds]]:
    for one in metadata:
        if isinstance(one, OneOf):
            yield annotation, one.known
        elif isinstance(one, OneIn):
            yield annotation, tuple(one.known().values())
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from _kinds(arguments[0], arguments[1:])
    elif origin in (Union, UnionType) and arguments and all(is_kind(one) for one in arguments):
        yield None, arguments
    elif origin in (Union, UnionType, tuple, dict):
        for one in arguments:
            yield from _kinds(one, ())


def is_kind(value: Any) -> bool:
    """Whether it is a class that a key of it chooses."""
    if not (inspect.isclass(value) and issubclass(value, Settings)):
        return False
    return any(
        get_origin(field.annotation) is Literal for name, field in value.model_fields.items() if name in CHOOSERS
    )


def _sections(annotation: Any) -> Iterator[type[Settings]]:
    if get_origin(annotation) is None:
        if inspect.isclass(annotation) and issubclass(annotation, Settings):
            yield annotation
    else:
        for one in get_args(annotation):
            yield from _sections(one)


def _holds_several(field: FieldInfo) -> bool:
    return any(get_origin(one) in (tuple, list) for one in _alternatives(field.annotation))


def _choices(annotation: Any) -> tuple[str, ...]:
    """All words that it may be, if nothing else can stand there but a section of its own."""
    found: list[str] = []
    alternatives = _alternatives(annotation)
    has_words = any(get_origin(one) is Literal for one in alternatives)
    for one in alternatives:
        if has_words and any(_sections(one)):
            continue
        if get_origin(one) is Literal:
            found += map(str, get_args(one))
        elif one in (bool, NoneType):
            found += ["true", "false"] if one is bool else ["null"]
        else:
            return ()
    return tuple(found)


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    """What stands between the bars of a union; bounds of one alternative stay with it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated and not any(isinstance(one, FieldInfo | OneOf | OneIn) for one in arguments[1:]):
        return _alternatives(arguments[0])
    if origin in (Union, UnionType):
        return tuple(inner for one in arguments for inner in _alternatives(one))
    return (annotation,)


def _of_type(annotation: Any, metadata: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        within = [bound for one in arguments[1:] if isinstance(one, FieldInfo) for bound in one.metadata]
        return _of_type(arguments[0], [*within, *metadata])
    if origin is Literal:
        return _joined([str(choice) for choice in arguments])
    if origin is tuple:
        return _list_of(arguments)
    if origin is dict:
        inner = _of_type(arguments[1], ())
        return "mapping" if inner in ("mapping", "a part", "anything") else f"mapping of names to {_plural(inner)}"
    if inspect.isclass(annotation) and issubclass(annotation, Settings):
        return "a part" if annotation.model_fields.keys() & set(CHOOSERS) else "mapping"
    name = _NAMES.get(annotation, getattr(annotation, "__name__", str(annotation)))
    return f"{name}{_bounds(metadata)}" if annotation in (int, float) else name


def _list_of(arguments: tuple[Any, ...]) -> str:
    if arguments[1:] not in ((), (...,)):
        return f"list of {len(arguments)}: {', '.join(_of_type(one, ()) for one in arguments)}"
    inner = _joined([_of_type(one, ()) for one in _alternatives(arguments[0])])
    return f"list of {_plural(inner)}"


def _plural(name: str) -> str:
    first, space, bounds = name.partition(" ")
    whole = next((word for word in _PLURALS if name == word or name.startswith(f"{word} ")), None)
    if whole:
        return _PLURALS[whole] + name.removeprefix(whole)
    return {"mapping": "mappings", "a part": "parts"}.get(name, f"{first}{space}{bounds}")


def _bounds(metadata: Any) -> str:
    found = ((word, getattr(one, sign)) for sign, word in _BOUNDS for one in metadata if hasattr(one, sign))
    return "".join(f" {word} {_number(bound)}" for word, bound in found if bound < BEYOND)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _joined(words: list[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} or {words[-1]}"


def _default(field: FieldInfo) -> Any:
    value = field.get_default(call_default_factory=True)
    return None if value is PydanticUndefined else _as_json(value)


def _as_json(value: Any) -> Any:
    if isinstance(value, Settings):
        return value.model_dump(mode="json")
    return [_as_json(one) for one in value] if isinstance(value, tuple | list) else value


def _plain(text: str | None) -> str:
    """A meaning as part of a table: no full stop at its end, and no marks of code."""
    return _plain_marks(text or "").strip().removesuffix(".")


def _decapitalised(text: str) -> str:
    """Without the capital letter of a sentence; names keep theirs."""
    first = text.partition(" ")[0]
    ordinary = first[1:].islower() or first in ("A", "If")
    return text[:1].lower() + text[1:] if ordinary and first not in NAMES else text


def _plain_marks(text: str) -> str:
    return text.replace("``", "")
