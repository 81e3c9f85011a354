"""A slot of an experiment: filled by one of our parts, named by its kind, or by anybody's, named by its address.

AnyMerge = Annotated[Merge, OneOf(Mean, Momentum, Matched)]

merge: {kind: momentum, beta: 0.3}              a part of the package
merge: {kind: "my_methods:Median"}              a class of ./my_methods.py, or of any installed package
Experiment(method={"merge": Median()}, ...)     the same from Python
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, TypeGuard

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo, ValidatorFunctionWrapHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from fedfuse.core.errors import ConfigError, unknown
from fedfuse.core.foreign import PACKAGE, address_of
from fedfuse.core.imports import import_object
from fedfuse.core.part import Part


@dataclass(frozen=True, init=False)
class OneOf:
    """The parts of the package that fill a slot; whatever else is of the slot's type comes by its address."""

    known: tuple[type[Part], ...]

    def __init__(self, *known: type[Part]) -> None:
        object.__setattr__(self, "known", known)

    def __get_pydantic_core_schema__(self, base: type[Part], handler: GetCoreSchemaHandler) -> CoreSchema:
        def choose(value: Any, known: ValidatorFunctionWrapHandler) -> Any:
            if isinstance(value, base) and type(value) not in self.known:
                return _findable(value)
            address = value.get(base.chooser) if isinstance(value, Mapping) else None
            return part_at(address, base).model_validate(value) if is_address(address) else known(value)

        def dump(part: Part, info: SerializationInfo) -> dict[str, Any]:
            return part.model_dump(mode=info.mode)

        union = self.known[0] if len(self.known) == 1 else reduce(or_, self.known)
        tagged = Annotated[union, Field(discriminator=base.chooser)] if len(self.known) > 1 else union
        return core_schema.no_info_wrap_validator_function(
            choose,
            handler.generate_schema(tagged),
            serialization=core_schema.plain_serializer_function_ser_schema(dump, info_arg=True),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        ours = handler(schema)
        chooser = self.known[0].chooser
        address = {"type": "string", "pattern": ".:.", "description": "package.module:Class, a part of your own"}
        return {"anyOf": [ours, {"type": "object", "properties": {chooser: address}, "required": [chooser]}]}


@dataclass(frozen=True)
class OneIn:
    """The parts that a module lists in its ``KINDS``, which is not imported before somebody names one of them."""

    module: str

    def known(self) -> Mapping[str, type[Part]]:
        kinds: tuple[type[Part], ...] = import_object(f"{self.module}:KINDS", "a part")
        return {str(kind.model_fields[kind.chooser].default): kind for kind in kinds}

    def __get_pydantic_core_schema__(self, base: type[Part], handler: GetCoreSchemaHandler) -> CoreSchema:
        def choose(value: Any) -> Any:
            if isinstance(value, base):
                return value if type(value) in self.known().values() else _findable(value)
            kind = value.get(base.chooser) if isinstance(value, Mapping) else None
            if is_address(kind):
                return part_at(kind, base).model_validate(value)
            known = self.known()
            if not isinstance(kind, str) or kind not in known:
                raise ValueError(unknown(base.chooser, str(kind), known) if kind else f"say its {base.chooser}")
            return known[kind].model_validate(value)

        def dump(part: Part, info: SerializationInfo) -> dict[str, Any]:
            return part.model_dump(mode=info.mode)

        return core_schema.no_info_plain_validator_function(
            choose, serialization=core_schema.plain_serializer_function_ser_schema(dump, info_arg=True)
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        known = self.known()
        chooser = next(iter(known.values())).chooser
        address = {"type": "string", "pattern": ".:.", "description": "package.module:Class, a part of your own"}
        by_address = {"type": "object", "properties": {chooser: address}, "required": [chooser]}
        return {"anyOf": [*(kind.model_json_schema() for kind in known.values()), by_address]}


def is_address(kind: Any) -> TypeGuard[str]:
    return isinstance(kind, str) and ":" in kind


def part_at(address: str, base: type[Part]) -> type[Part]:
    """The class behind an address, if it fits into a slot of ``base``."""
    try:
        found = import_object(address, base.chooser)
    except ConfigError as error:
        raise ValueError(str(error)) from None
    if not (isinstance(found, type) and issubclass(found, base)):
        raise ValueError(f"{address} is no {base.__name__}; derive it from {PACKAGE}.{base.__name__}")
    if missing := sorted(found.__abstractmethods__):
        raise ValueError(f"{address} has no {', '.join(missing)}, without which it is no {base.__name__}; write it")
    return found


def _findable(part: Part) -> Part:
    """An object of a class from outside, if another process could find the class."""
    part_at(address_of(type(part)), Part)
    return part
