"""Who asked, a command line or Python, and so in whose words a sentence says what to do.

Sentences are written with the options of the command line (``--overwrite``). To whoever called a function they name
its arguments (``overwrite=True``), when they are read: so a sentence that another process wrote is put right, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

ARGUMENTS = {
    "resume": "resume=True",
    "overwrite": "overwrite=True",
    "prune": "prune=True",
    "out": "out=",
    "set": "the assignment",
    "over": "over=",
    "method": "method=",
    "methods": "methods=",
    "seed": "seed=",
    "seeds": "seeds=",
    "jobs": "jobs=",
    "budget": "budget=",
    "sampler": "sampler=",
    "sampler-seed": "sampler_seed=",
    "student": "student=",
    "data": "data=",
    "task": "task=",
    "reference": "reference=",
    "columns": "columns=",
    "digits": "digits=",
    "interval": "interval=",
    "format": "format=",
    "curves": "curves=True",
    "picture": "picture=",
    "band": "band=",
    "model": "model=",
    "size": "size=",
    "x": "x=",
    "y": "y=",
}
"""What functions call the options of commands."""
_COMMANDS_AND_OPTIONS = re.compile(
    rf"(?P<command>\bfedfuse [a-z]+\b[^;,()]*)|(?<![\w-])--(?P<option>{'|'.join(ARGUMENTS)})(?![\w-])(?P<space> ?)"
)
_by_command_line = False


@contextmanager
def asked_by_command_line() -> Iterator[None]:
    """While a command is obeyed, sentences speak of options."""
    global _by_command_line
    before, _by_command_line = _by_command_line, True
    try:
        yield
    finally:
        _by_command_line = before


def in_words_of_asker(sentence: str) -> str:
    """The sentence with options as whoever asked calls them; a whole command in it stays one."""
    return sentence if _by_command_line else _COMMANDS_AND_OPTIONS.sub(_argument, sentence)


def _argument(found: re.Match[str]) -> str:
    if found["command"]:
        return found["command"]
    argument = ARGUMENTS[found["option"]]
    following = found.string[found.end() :].split(" ", 1)[0].rstrip(",.;:")
    # budget=30, but: choose another out= or wait
    is_value = argument.endswith("=") and not following.isalpha()
    return argument if is_value else argument + found["space"]
