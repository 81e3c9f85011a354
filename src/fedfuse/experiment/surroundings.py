"""Where Python runs, and so how a run is shown to whoever started it if they did not say."""

from __future__ import annotations

import sys
from typing import Any, Literal

Surroundings = Literal["notebook", "session", "script"]


def surroundings() -> Surroundings:
    """A notebook that shows HTML, a session in which somebody types, or a program that runs by itself.

    Jupyter, VS Code and Colab run code in a kernel; IPython in a terminal is a session, as Python's own prompt is.
    """
    if getattr(ipython_shell(), "kernel", None) is not None:
        return "notebook"
    is_typed = hasattr(sys, "ps1") or bool(sys.flags.interactive) or ipython_shell() is not None
    return "session" if is_typed else "script"


def ipython_shell() -> Any:
    """IPython's shell, if this process has one; nobody has to install it."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    return get_ipython()
