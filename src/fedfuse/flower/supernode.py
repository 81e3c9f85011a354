"""A SuperNode that runs accepted apps only: ``python -m fedfuse.flower.supernode HASH,HASH SECONDS PORT OPTION...``

The options are those of ``flower-supernode``. Of that, two functions are replaced: the one that takes a message of an
unknown run and fetches the run's app, because an app that is not accepted is neither stored nor unpacked, and the one
that asks to be let in, which goes on asking for some SECONDS.

The node hands out its tasks on PORT of the loopback address, to its own SuperExec alone: whoever else on this machine,
or a web page in its browser, got one could read it and answer in the party's name.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from flwr.app import Error, Message
from flwr.common.constant import ErrorCode
from flwr.supercore.fab import Fab
from flwr.supercore.run import Run
from flwr.supernode import start_client_internal as flower
from flwr.supernode.cli import flower_supernode

from fedfuse.core.errors import FedfuseError
from fedfuse.flower.bundles import reason_to_refuse
from fedfuse.flower.deployment import OPERATOR, with_secret
from fedfuse.flower.flower_version import check_version
from fedfuse.flower.superexec import SuperExec
from fedfuse.flower.waiting import wait_to_be_let_in

logger = logging.getLogger("flwr")
REFUSAL = "its node does not accept this app"
"""All that the server is told."""
Take = Callable[..., int | None]


class _NotAcceptedError(Exception):
    """The reason, on its way out of Flower's function."""


def guarded(take: Take, accepted: Collection[str]) -> Take:
    """Flower's function, with a look at the app before it is stored."""

    def take_if_accepted(
        *, receive: Callable[[], Any], get_run: Callable[[int], Run], get_fab: Callable[[str, int], Fab], **rest: Any
    ) -> int | None:
        messages: list[Message] = []
        runs: dict[int, Run] = {}

        def receive_and_note() -> Any:
            received = receive()
            messages.extend(() if received is None else received[:1])
            return received

        def get_run_and_note(number: int) -> Run:
            runs[number] = get_run(number)
            return runs[number]

        def get_accepted_fab(name: str, number: int) -> Fab:
            fab = get_fab(name, number)
            reason = reason_to_refuse(fab, runs[number], accepted)
            if reason is not None:
                raise _NotAcceptedError(reason)
            return fab

        try:
            return take(receive=receive_and_note, get_run=get_run_and_note, get_fab=get_accepted_fab, **rest)
        except _NotAcceptedError as refusal:
            (message,) = messages
            logger.error("fedfuse: run %s refused: %s", message.metadata.run_id, refusal)
            reply = Message(Error(ErrorCode.INVALID_FAB, REFUSAL), reply_to=message)
            flower._insert_message(reply, rest["state"], rest["object_store"])
            return int(message.metadata.run_id)

    return take_if_accepted


def main(arguments: list[str]) -> None:
    """Become Flower's SuperNode, guarded."""
    check_version()
    hashes, seconds, port, *options = arguments
    accepted = [word for word in hashes.split(",") if word]
    wait_to_be_let_in(float(seconds))
    flower._pull_and_store_message = guarded(flower._pull_and_store_message, accepted)
    with TemporaryDirectory(prefix="fedfuse-supernode-", ignore_cleanup_errors=True) as folder:
        superexec = SuperExec(int(port), None, None, Path(folder))
        sys.argv = ["flower-supernode", "--host", OPERATOR, "--port", port, *with_secret(superexec.secret), *options]
        with superexec.running():
            flower_supernode()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except FedfuseError as error:
        sys.exit(str(error))
