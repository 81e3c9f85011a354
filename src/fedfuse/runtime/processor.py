"""What this machine's processor can do."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def multiplies_bf16() -> bool:
    """Whether it has instructions for bfloat16, of which torch otherwise makes many; True where that is not known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    features = next((line.split() for line in lines if line.lower().startswith(("flags", "features"))), None)
    return features is None or any(name in features for name in ("avx512_bf16", "amx_bf16", "bf16"))
