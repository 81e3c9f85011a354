"""How a party follows what its node does: lines in the log, a status to look at, and receipts of all that left."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from flwr.app import Error, RecordDict

from fedfuse.experiment.config import ExperimentConfig
from fedfuse.flower.receipt_keys import receipt_key
from fedfuse.flower.receipts import describe, describe_values, sizes, write_receipt
from fedfuse.flower.status import RECEIPTS, STATUS, count, file_of, in_words, note

logger = logging.getLogger("flwr")
LONGEST = 200
"""Characters of a sentence from the server that are shown."""


class Logbook:
    """Of one client in one experiment; ``state`` is the node's folder."""

    def __init__(self, state: Path, config: ExperimentConfig, client: int, run: int) -> None:
        self.state, self.config, self.client, self.run = state, config, client, run
        self.status = file_of(state, STATUS, config.name, client)
        self.receipts = file_of(state, RECEIPTS, config.name, client)
        self.privacy: Mapping[str, Any] = {}
        """What was given away so far, with what is about to leave, where that is counted."""
        self.is_masked = False
        """Whether what is about to leave can be seen in a sum alone."""

    def say(self, sentence: str) -> None:
        name, method = self.config.name, self.config.method.called
        logger.info("fedfuse: %s (%s), client %s: %s", name, method, self.client, sentence)

    def note(self, **facts: Any) -> None:
        """Into the status, which is no more than a notice: that it cannot be written keeps nobody from work."""
        config = self.config
        what = {"experiment": config.name, "method": config.method.called, "rounds": config.federation.rounds}
        with suppress(OSError):
            note(self.status, {**what, "client": self.client, **facts})

    def gave_away(self, numbers: Mapping[str, Any]) -> None:
        """What all answers so far, and the one that is about to leave, have cost."""
        self.privacy = numbers
        self.note(privacy=numbers)
        self.say(f"epsilon {in_words(numbers)}")

    def sends(self, purpose: str, number: int, content: RecordDict | Error) -> None:
        """The receipt of what is about to leave, signed by the node."""
        records = _records(content)
        facts = {"client": self.client, "run": self.run, "round": number, "purpose": purpose}
        if self.privacy:
            facts["privacy"] = self.privacy
        if self.is_masked:
            facts["masked"] = True
        write_receipt(self.receipts, facts, records, receipt_key(self.state))
        self.say(f"sends {purpose}: {sizes(records)}; receipt in {self.receipts}")

    def was_refused(self, reason: Any) -> None:
        """Why the server did not take the answer before; it is a text from elsewhere."""
        if not isinstance(reason, str) or not reason:
            return
        shown = "".join(sign if sign.isprintable() else " " for sign in reason[:LONGEST])
        logger.warning("fedfuse: client %s: the server did not take the last answer: %s", self.client, shown)
        with suppress(OSError):
            count(self.status, "refusals", "refused", shown)

    def has_trouble(self, sentence: str) -> None:
        """Why this node could not do what it was asked."""
        self.note(doing="waiting for a task")
        with suppress(OSError):
            count(self.status, "troubles", "trouble", sentence)


def _records(content: RecordDict | Error) -> Mapping[str, Any]:
    if isinstance(content, RecordDict):
        return describe(content)
    return {"error": describe_values({"code": content.code, "reason": content.reason})}
