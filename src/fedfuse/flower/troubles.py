"""What node and server tell each other of answers that were not to be had: a node one of a few fixed sentences.

What went wrong is the party's own business, since an error may quote a path or a value of its data; it is in the
party's log.
"""

from __future__ import annotations

from flwr.app import Error

from fedfuse.core.errors import ConfigError, DataError, FedfuseError, MissingExtraError

REFUSED = "refused"
"""Under which a task says why the client's last answer was not taken."""
TROUBLES: tuple[tuple[type[Exception], int, str], ...] = (
    (DataError, 101, "the party's data or its stored state does not fit the task; its log says why"),
    (ConfigError, 102, "the node's settings do not fit the experiment; its log says why"),
    (MissingExtraError, 103, "a package is missing on the node; its log says which"),
    (FedfuseError, 104, "the node cannot do this task; its log says why"),
    (Exception, 100, "the node failed; its log says how"),
)
"""The first class that fits an error, its code, and the sentence that is sent. Flower's own codes are smaller."""


def trouble(error: Exception) -> Error:
    """What is sent in the place of an answer."""
    code, sentence = next((code, sentence) for kind, code, sentence in TROUBLES if isinstance(error, kind))
    return Error(code, sentence)
