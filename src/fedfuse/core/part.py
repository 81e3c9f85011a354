"""The base of everything a config can name: small frozen parameters that know only their own fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, SupportsIndex, get_args

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic.fields import FieldInfo

from fedfuse.core.errors import UnknownKeyError
from fedfuse.core.foreign import address_of, is_ours, remember_source
from fedfuse.core.imports import import_object


class Settings(BaseModel):
    """Immutable, validated parameters; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @property
    def depends_on_rounds(self) -> bool:
        """Whether what it does in a round depends on how many rounds the run shall have; then none can be added."""
        return False

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for key in value:
                if key not in cls.model_fields:
                    raise UnknownKeyError(str(key), cls.model_fields)
            return {key: _no_number(inner, cls.model_fields[key]) for key, inner in value.items()}
        return value


def _no_number(value: Any, field: FieldInfo) -> Any:
    """A truth value where a number stands, as a text that is refused: ``seed: yes`` is not the seed 1."""
    if not isinstance(value, bool):
        return value
    kinds = list(_kinds(field.annotation))
    takes_it = any(kind in (bool, str, Any) or kind is value for kind in kinds)
    return value if takes_it or not (int in kinds or float in kinds) else str(value)


def _kinds(annotation: Any) -> Iterator[Any]:
    """All types and values that an annotation speaks of."""
    inner = get_args(annotation)
    for one in inner:
        yield from _kinds(one)
    if not inner:
        yield annotation


def first_mistake(error: ValidationError, *within: str, skip: int = 0) -> str:
    """The first of them in one line: where it is, below ``within`` and without so many outer steps, and what it is."""
    first = error.errors()[0]
    where = ".".join([*within, *map(str, first["loc"][skip:])])
    mistake = first["msg"].removeprefix("Value error, ")
    return f"{where}: {mistake}" if where else mistake


class Part(Settings):
    """One interchangeable piece of a method, a model, a partition or a source, chosen by its ``kind``.

    A part holds parameters and pure functions of them. What changes during a run lives in the server's
    or a client's state, never in the part.

    The kind of a class from outside this package is its address, whatever it says itself: so an experiment that names
    it can be read again, and is never taken for one with a part of ours, even if the class is derived from that part.
    """

    chooser: ClassVar[str] = "kind"
    """The key that says which part it is."""

    @property
    def own_code(self) -> tuple[str, ...]:
        """Addresses of the user's own code that this part runs."""
        return tuple(address_of(base) for base in type(self).__mro__ if issubclass(base, Part) and not is_ours(base))

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        if not is_ours(cls):
            remember_source(cls)
            address = address_of(cls)
            cls.model_fields[cls.chooser] = FieldInfo(annotation=Literal[address], default=address)  # type: ignore[arg-type]
            cls.model_rebuild(force=True)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Another process finds a class from outside where this one did: in the working folder, or installed."""
        if is_ours(type(self)):
            return super().__reduce_ex__(protocol)
        return _rebuilt, (address_of(type(self)), self.model_dump())


def _rebuilt(address: str, values: dict[str, Any]) -> Part:
    part: Part = import_object(address, "a part").model_validate(values)
    return part


def dependent_on_rounds(settings: Any, at: tuple[str, ...] = ()) -> Iterator[str]:
    """The keys of all that depends on the number of rounds, below a section."""
    if isinstance(settings, Settings):
        if settings.depends_on_rounds:
            yield ".".join(at)
        for name in type(settings).model_fields:
            yield from dependent_on_rounds(getattr(settings, name), (*at, name))
    elif isinstance(settings, Mapping | list | tuple):
        named = settings if isinstance(settings, Mapping) else dict(enumerate(settings))
        for key, value in named.items():
            yield from dependent_on_rounds(value, (*at, str(key)))


def addresses_in(settings: Any) -> Iterator[str]:
    """The addresses of all that is the user's own in a section: parts, and functions that parts call."""
    if isinstance(settings, Settings):
        if isinstance(settings, Part):
            yield from settings.own_code
        for name in type(settings).model_fields:
            yield from addresses_in(getattr(settings, name))
    elif isinstance(settings, Mapping | list | tuple):
        for inner in settings.values() if isinstance(settings, Mapping) else settings:
            yield from addresses_in(inner)
