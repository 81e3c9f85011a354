"""Modules are out of the collector's sight; what a run leaves behind is not."""

from __future__ import annotations

import gc
import subprocess
import sys

from fedfuse.cli.imports import quick_imports

SCRIPT = """
import gc
from fedfuse.cli.imports import quick_imports
with quick_imports():
    import decimal, fractions
print(gc.isenabled(), gc.get_freeze_count() > 0)
"""


def test_what_was_imported_is_never_looked_through_again():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == ["True", "True"]


def test_nothing_is_kept_where_nothing_was_imported():
    before = gc.get_freeze_count()
    with quick_imports():
        import json  # noqa: F401
    assert gc.isenabled()
    assert gc.get_freeze_count() == before
