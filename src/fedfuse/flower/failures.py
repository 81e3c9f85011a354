"""What a server learns of a node that failed: a code, and for each code one sentence of our own.

The text of an error may quote a party's paths and data; it stays in the party's own log.
"""

from __future__ import annotations

from flwr.app import Error

from fedfuse.core.errors import DataError, FedfuseError


class SpentError(FedfuseError):
    """A party's privacy budget does not allow another answer."""


RAISED = "its app ended with an error"
SENTENCES = {
    1: "its app cannot be loaded",
    3: "its answer did not come in time",
    4: "its answer did not come in time",
    5: "its node is not connected",
    7: "its node does not accept this app",
    101: "its settings do not fit this experiment",
    102: "its data do not fit this experiment",
    103: "its privacy budget is spent",
}
"""By Flower's codes, and from 101 on by those of ``failure``."""


def failure(error: Exception) -> Error:
    """What a node sends in the place of an answer."""
    codes: tuple[tuple[type[Exception], int], ...] = ((SpentError, 103), (DataError, 102), (FedfuseError, 101))
    code = next((code for kind, code in codes if isinstance(error, kind)), 2)
    return Error(code, SENTENCES.get(code, RAISED))


def why_not(error: Error | None) -> str:
    """Why there is no answer; None: there is one, which Flower cannot read."""
    if error is None:
        return "its answer cannot be read"
    return f"{SENTENCES.get(error.code, RAISED)}; the node's own log says more"
