"""Receipts as lines of JSON, each chained to the one before and signed if its writer has a key; how they are checked.

    before       SHA-256 of the line before, so that a line that was taken out or changed shows
    total        bytes of each record over all lines so far
    key          who signs, an Ed25519 public key in hexadecimal; not there in lines that nobody signed
    signature    by that key, of the line as it is without its signature

A signature says who wrote a line, the chain that no line before it is missing. That lines at the end are missing shows
only beside something that knew of them: a hash that was noted then, or the log of the server.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Protocol

from fedfuse.core.errors import DataError
from fedfuse.core.plain_json import dumps

FIRST = "0" * 64
"""What stands before the first line."""
LONGEST = 1 << 24
"""Bytes of a line; one about a network of a thousand layers has a hundred thousand."""
KEY, SIGNATURE = "key", "signature"
CONTENT = ("arrays", "extras", "test-outputs")
"""Records of an answer that are made from a party's data."""


class Signer(Protocol):
    """Whoever has a private key."""

    @property
    def key(self) -> str:
        """The public one in hexadecimal."""

    def sign(self, content: bytes) -> str:
        """The signature in hexadecimal."""


@dataclass(frozen=True)
class Verified:
    """What a file of receipts is, all of whose lines follow one another."""

    lines: int
    signed: int
    """How many are signed; those before them are of an earlier version."""
    keys: tuple[str, ...]
    """By whom, in the order in which they began."""
    clients: tuple[int, ...]
    total: Mapping[str, int]
    head: str
    """SHA-256 of the last line: who notes it, can see later that nothing was cut."""
    cautions: tuple[str, ...] = ()


def as_line(receipt: Mapping[str, Any], signer: Signer | None = None) -> bytes:
    """A receipt as it is written, without the end of the line."""
    if signer is None:
        return dumps(receipt).encode()
    named = {**receipt, KEY: signer.key}
    return dumps({**named, SIGNATURE: signer.sign(dumps(named).encode())}).encode()


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a file, within bounds."""
    try:
        with path.open("rb") as file:
            while line := file.readline(LONGEST + 1):
                if len(line) > LONGEST:
                    raise DataError(f"{path} has a line of more than {LONGEST:,} bytes, and is no file of receipts")
                yield line.rstrip(b"\n")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def read_receipts(path: Path) -> Iterator[dict[str, Any]]:
    """The receipts in order; raises at one that does not follow the line before."""
    before = FIRST
    for number, line in enumerate(lines_of(path), start=1):
        receipt = parsed(line)
        if receipt is not None:
            if receipt.get("before") != before:
                raise DataError(
                    f"{path}, line {number} does not follow the one before: a line was changed or taken out"
                )
            yield receipt
        before = sha256(line)


def verify_receipts(path: str | Path, key: str | None = None, head: str | None = None) -> Verified:
    """Check a party's receipts: no line changed, missing in between, moved, or signed by somebody else.

    With ``key``, the public key that the party told, every line must be signed by it. With ``head``, the hash that an
    earlier check told, the lines of then must still be there. Raises ``DataError`` at the first line that is wrong.
    """
    path = Path(path)
    check = _Check(path, key)
    heads = {FIRST}
    for number, line in enumerate(lines_of(path), start=1):
        check.line(number, line)
        if head is not None:
            heads.add(check.before)
    if not check.receipts:
        raise DataError(f"{path} has no receipts")
    if head is not None and head.lower() not in heads:
        raise DataError(
            f"{path} does not have the line with hash {head[:64]}: lines were cut off, or all was written anew"
        )
    return check.verified()


class _Check:
    """Goes through a file, line by line."""

    def __init__(self, path: Path, key: str | None) -> None:
        self.path, self.key = path, key
        self.before, self.receipts, self.signed, self.unreadable = FIRST, 0, 0, 0
        self.total: dict[str, int] = {}
        self.keys: dict[str, None] = {}
        self.clients: dict[int, None] = {}
        self.time = ""
        self.set_back = 0
        self.answered: dict[tuple[str, Any], tuple[str, ...]] = {}
        self.answered_anew = 0

    def line(self, number: int, line: bytes) -> None:
        receipt = parsed(line)
        if receipt is None:  # of a process that was killed while it wrote; the next line has its hash
            self.unreadable += bool(line)
        else:
            self._receipt(f"{self.path}, line {number}", receipt, line)
        self.before = sha256(line)

    def _receipt(self, where: str, receipt: dict[str, Any], line: bytes) -> None:
        if receipt.get("before") != self.before:
            raise DataError(f"{where} does not follow the one before: a line was changed or taken out")
        for name, record in receipt["records"].items():
            self.total[name] = self.total.get(name, 0) + record["bytes"]
        if receipt["total"] != self.total:
            raise DataError(f"{where} does not add up: its total is not that of the lines so far")
        self._signature(where, receipt, line)
        if type(client := receipt.get("client")) is int:
            self.clients[client] = None
        if len(self.clients) > 1:
            raise DataError(f"{where} is of client {client}, but the lines before are of another")
        self._answer(receipt)
        self.set_back += str(receipt["time"]) < self.time
        self.time, self.receipts = str(receipt["time"]), self.receipts + 1

    def _answer(self, receipt: dict[str, Any]) -> None:
        """A server that fell back is given the same again; whoever is given another answer has asked for it.

        Masks are new each time, so that nothing can be told of what they hide.
        """
        said = tuple(str(record.get("sha256")) for name, record in receipt["records"].items() if name in CONTENT)
        if receipt["purpose"] != "update" or not said or receipt.get("masked"):
            return
        place = str(receipt.get("run")), receipt["round"]
        self.answered_anew += self.answered.setdefault(place, said) != said
        self.answered[place] = said

    def _signature(self, where: str, receipt: dict[str, Any], line: bytes) -> None:
        signer, signature = receipt.get(KEY), receipt.get(SIGNATURE)
        if signature is None:
            if self.key is not None or self.signed:
                raise DataError(f"{where} is not signed; ask the party for the file as its node wrote it")
            return
        if self.key is not None and signer != self.key.lower():
            raise DataError(f"{where} is signed by another key than {self.key[:64]}")
        unsigned = {name: value for name, value in receipt.items() if name != SIGNATURE}
        is_as_written = dumps(receipt).encode() == line  # a name that is there twice would be read once
        if not is_as_written or not is_signed_by(signer, signature, dumps(unsigned).encode()):
            raise DataError(f"{where} has a signature that is not of its content and key: it was forged or changed")
        self.keys[str(signer)] = None
        self.signed += 1

    def verified(self) -> Verified:
        said = [
            (self.set_back, "lines are older by their clock than the one before: a clock was set back"),
            (
                self.answered_anew,
                "answers are other ones than before in the same round of a run: the server asked anew",
            ),
            (self.unreadable, "lines are unfinished, as a process that is killed leaves them"),
            (len(self.keys) - 1 if self.keys else 0, "times the party signs with another key than before"),
        ]
        cautions = tuple(f"{count} {sentence}" for count, sentence in said if count)
        keys, clients = tuple(self.keys), tuple(self.clients)
        return Verified(self.receipts, self.signed, keys, clients, self.total, self.before, cautions)


def is_signed_by(key: Any, signature: Any, content: bytes) -> bool:
    """Whether a signature is that of the content by the owner of a key; both in hexadecimal, from elsewhere."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise DataError("signatures are checked by the package cryptography: pip install cryptography") from None
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key)).verify(bytes.fromhex(signature), content)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def parsed(line: bytes) -> dict[str, Any] | None:
    """None if it is no receipt."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if _is_receipt(value) else None


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_receipt(value: Any) -> bool:
    """Whether it has what is read of it; whoever writes by hand into the file may write anything."""
    if not isinstance(value, dict) or not all(isinstance(value.get(name), str) for name in ("time", "purpose")):
        return False
    if not all(type(one) in (int, NoneType) for one in (value.get("round", "missing"), value.get("client"))):
        return False
    total, records = value.get("total"), value.get("records")
    if not isinstance(total, dict) or not isinstance(records, dict):
        return False
    sizes = [record.get("bytes") if isinstance(record, dict) else None for record in records.values()]
    return all(type(size) is int and size >= 0 for size in (*total.values(), *sizes))
