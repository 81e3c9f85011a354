"""The base of everything a config can name: small frozen parameters that know only their own fields."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from fedfuse.core.errors import UnknownKeyError


class Settings(BaseModel):
    """Immutable, validated parameters; an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_unknown_keys(cls, value: Any) -> Any:
        if isinstance(value, dict):
            for key in value:
                if key not in cls.model_fields:
                    raise UnknownKeyError(str(key), cls.model_fields)
        return value


class Part(Settings):
    """One interchangeable piece of a method, a model, a partition or a source, chosen by its ``kind``.

    A part holds parameters and pure functions of them. What changes during a run lives in the server's
    or a client's state, never in the part.
    """
