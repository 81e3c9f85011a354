"""Our laws for anybody's part.

check_part(Dynamic(strength=0.1))                        # an object
check_part("my_methods:Dynamic", verbose=True)           # or its address
check_part(Dynamic(strength=0), equals="fedavg")         # a limit that it must have, bit for bit
check_part(Dynamic(), method={"merge": DynamicMean()})   # beside parts that it needs
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fedfuse.core.imports import import_object
from fedfuse.core.part import Part
from fedfuse.methods import Method
from fedfuse.testing.laws import Case, does_not_change_with_workers, is_the_same_as
from fedfuse.testing.slots import Slot, slot_of
from fedfuse.testing.trial import Trial

NOTHING: Mapping[str, Any] = MappingProxyType({})


def check_part(
    part: Part | Method | type[Part] | str,
    *,
    equals: Part | Method | str | None = None,
    values: Mapping[str, Any] = NOTHING,
    workers: bool = True,
    verbose: bool = False,
    **sections: Any,
) -> None:
    """Try a part, or a whole method, in small experiments on toy data; an AssertionError names the law that it breaks.

    A class or an address is made with ``values``. ``equals`` is a method, or a part of the same slot, whose models it
    must give bit for bit. Without ``workers`` no other process is started, which takes most of the time. ``sections``
    are laid over the toy experiment, key by key, as in ``fedfuse.run``.
    """
    made = _made(part, values)
    slot = slot_of(made)
    case = Case(made, Trial.of(slot.place(made), sections), Trial.of(sections))
    laws = slot.laws if equals is None else (*slot.laws, is_the_same_as(_limit(slot, equals, sections)))
    for law in laws if workers else [law for law in laws if law is not does_not_change_with_workers]:
        name = law.__name__.replace("_", " ")
        if verbose:
            print(name, flush=True)
        try:
            law(case)
        except AssertionError as broken:
            raise AssertionError(f"{_called(made)} breaks the law '{name}': {broken}") from None
        except Exception as error:
            error.add_note(f"while {_called(made)} was tried for the law '{name}'")
            raise


def _made(part: Any, values: Mapping[str, Any]) -> Part | Method:
    found = import_object(part, "check_part") if isinstance(part, str) else part
    return found.model_validate(values) if isinstance(found, type) and issubclass(found, Part) else found


def _limit(slot: Slot, equals: Part | Method | str, sections: Mapping[str, Any]) -> Trial:
    if isinstance(equals, Part):
        return Trial.of(slot.place(equals), sections)
    return Trial.of({"method": equals}, sections)


def _called(part: Part | Method) -> str:
    return part.name if isinstance(part, Method) else type(part).__name__
