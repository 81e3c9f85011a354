"""Keep the memory of one training step for the next.

By default glibc hands large freed blocks back to the system at once. A network's activations are such blocks, so every
step asks the system for the same pages again and waits until they are zeroed. The results are the
same; a process only keeps what it needed at its peak.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of malloc.h."""
_LARGE = 2**30


@cache
def keep_freed_memory() -> bool:
    """Ask this process's allocator to; False if it is not glibc's or its user has set it up already."""
    if any(name.startswith("MALLOC_") for name in os.environ) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        library = ctypes.CDLL(None)
        mallopt, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        return False
    trim(0)  # what reading and dividing the data left behind is of no use to a training step
    return bool(mallopt(_MMAP_THRESHOLD, _LARGE)) and bool(mallopt(_TRIM_THRESHOLD, _LARGE))
