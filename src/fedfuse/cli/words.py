"""Words of a command line, and the sentence for one that was interrupted."""

from __future__ import annotations

from fedfuse.core.errors import ConfigError, FedfuseError


def words_of(text: str) -> list[str]:
    """What commas separate."""
    return [word.strip() for word in text.split(",") if word.strip()]


def seeds_of(text: str) -> list[int]:
    """Different whole numbers."""
    try:
        found = [int(word) for word in words_of(text)]
    except ValueError:
        raise ConfigError(f"--seeds {text}: write whole numbers separated by commas, for example 0,1,2") from None
    if not found or len(set(found)) < len(found):
        raise ConfigError(f"--seeds {text}: write different whole numbers separated by commas, for example 0,1,2")
    return found


def go_on_with(command: str) -> FedfuseError:
    """For whoever pressed Ctrl-C."""
    return FedfuseError(f"interrupted; finished rounds are kept, go on with: {command}")
