"""The key with which a node signs its receipts: made by the node when it first needs it, and its own alone.

receipts.key    in the node's folder, readable by its owner: the private key
receipts.pub    what the party tells others, in hexadecimal
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedfuse.core.errors import DataError
from fedfuse.core.files import write_bytes

PRIVATE, PUBLIC = "receipts.key", "receipts.pub"


@dataclass(frozen=True)
class ReceiptKey:
    """Signs receipts."""

    private: Ed25519PrivateKey

    @property
    def key(self) -> str:
        return bytes(self.private.public_key().public_bytes_raw()).hex()

    def sign(self, content: bytes) -> str:
        return bytes(self.private.sign(content)).hex()


def receipt_key(state: Path) -> ReceiptKey:
    """That of the node whose folder this is; two processes that make it at once have the same afterwards."""
    path = state / PRIVATE
    try:
        if not path.exists():
            _make(path)
        key = ReceiptKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text(encoding="ascii").strip())))
        if not (state / PUBLIC).exists():
            write_bytes(state / PUBLIC, f"{key.key}\n".encode())
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}; nothing was sent, because no receipt could be signed") from None
    except ValueError:
        raise DataError(
            f"{path} is no key of 32 bytes; bring it back, or remove it to sign with a new one from now on"
        ) from None
    return key


def _make(path: Path) -> None:
    """Written whole beside its place, and put there unless somebody was quicker."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with os.fdopen(os.open(own, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(Ed25519PrivateKey.generate().private_bytes_raw().hex() + "\n")
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(own, path)
    except FileExistsError:
        pass
    finally:
        own.unlink()
