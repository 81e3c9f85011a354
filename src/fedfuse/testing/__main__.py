"""The laws from a command line: ``python -m fedfuse.testing my_methods:Dynamic strength=0.1``."""

from __future__ import annotations

import sys
from typing import Any

import yaml

from fedfuse.core.errors import FedfuseError
from fedfuse.testing.check import check_part


def main(arguments: list[str]) -> None:
    """Check one part, made with the values that follow its address."""
    if not arguments or any("=" not in word for word in arguments[1:]):
        sys.exit("usage: python -m fedfuse.testing package.module:Part [key=value ...]")
    try:
        check_part(arguments[0], values=dict(map(_value, arguments[1:])), verbose=True)
    except (AssertionError, FedfuseError, ValueError) as error:
        sys.exit(str(error))


def _value(word: str) -> tuple[str, Any]:
    key, _, text = word.partition("=")
    return key, yaml.safe_load(text)


if __name__ == "__main__":
    main(sys.argv[1:])
