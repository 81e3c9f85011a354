"""Certificates and keys of a deployment: made where they are used, and looked at before anything is started with them.

ca.crt                        everybody has it: who signed the SuperLink's certificate
ca.key                        signs the next certificate when this one ends; needed for nothing else
server.pem, server.key        the SuperLink's alone
client-N, client-N.pub        a party's key, which never leaves it, and what the SuperLink is told of it
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_bytes
from fedfuse.flower.certificates import (
    authority,
    certificate_of,
    expires_soon,
    hosts_of,
    pem,
    read,
    read_certificate,
    read_in_time,
)

CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "server.pem", "server.key"
AUTHORITY_DAYS = 3650
"""How long the authority lasts: its end is the one that every party notices."""
NEW_AUTHORITY = "make new keys with fedfuse flower keys in another folder and give every party the new ca.crt"
RENEW = "renew it with fedfuse flower keys --renew and start the SuperLink again"
OPENSSH = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH


def node_key(client: int) -> str:
    return f"client-{client}"


def make_keys(folder: Path, nodes: int, hosts: Sequence[str], days: int, now: datetime | None = None) -> None:
    """Write a new authority and the SuperLink's certificate into a folder that has none; also ``nodes`` nodes' keys."""
    if any((folder / name).exists() for name in (CA, CA_KEY, CERTIFICATE, KEY)):
        raise ConfigError(
            f"{folder} has keys already: --renew makes a new certificate, fedfuse flower register adds a party; "
            "choose another folder for another federation"
        )
    now = now or datetime.now(UTC)
    signer, server = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
    ca = authority(signer, max(AUTHORITY_DAYS, days), now)
    certificate = certificate_of(server.public_key(), hosts, signer, now, now + timedelta(days=days))
    folder.mkdir(parents=True, exist_ok=True)
    _write_private(folder / CA_KEY, signer, serialization.PrivateFormat.PKCS8)
    _write_private(folder / KEY, server, serialization.PrivateFormat.PKCS8)
    write_bytes(folder / CA, pem(ca))
    write_bytes(folder / CERTIFICATE, pem(certificate))
    for client in range(nodes):
        make_node_key(folder, client)


def renew(folder: Path, hosts: Sequence[str], days: int, now: datetime | None = None) -> datetime:
    """A new certificate for the SuperLink's key, under its names so far and ``hosts``, and until when it is valid.

    Nobody else notices: the authority stays, and so does ca.crt.
    """
    now = now or datetime.now(UTC)
    if not (folder / CA_KEY).exists() and (folder / CA).exists():
        raise ConfigError(f"{folder} has no {CA_KEY}, which signs certificates; put it back, or {NEW_AUTHORITY}")
    ca = read_in_time(folder / CA, NEW_AUTHORITY, now)
    signer, server = (_private(folder / name) for name in (CA_KEY, KEY))
    if _bytes_of(signer.public_key()) != _bytes_of(ca.public_key()):
        raise ConfigError(f"{folder / CA_KEY} is not the key of {folder / CA}; take both from one keys folder")
    known = hosts_of(read_certificate(folder / CERTIFICATE))
    end: datetime = min(now + timedelta(days=days), ca.not_valid_after_utc)
    certificate = certificate_of(server.public_key(), [*known, *hosts], signer, now, end)
    write_bytes(folder / CERTIFICATE, pem(certificate))
    return end


def make_node_key(folder: Path, client: int) -> str:
    """Write the key of a client's node and its public half, and return the fingerprint."""
    path = folder / node_key(client)
    key = ec.generate_private_key(ec.SECP384R1())
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _write_private(path, key, serialization.PrivateFormat.OpenSSH)
    except FileExistsError:
        raise ConfigError(f"{path} is a key already; it stays as it is, choose another folder") from None
    write_bytes(folder / f"{path.name}.pub", key.public_key().public_bytes(*OPENSSH) + b"\n")
    return fingerprint(key.public_key())


def read_public(path: Path) -> ec.EllipticCurvePublicKey:
    """The public half of a party's key."""
    try:
        key = read(path, serialization.load_ssh_public_key, "the public half of a key")
    except UnsupportedAlgorithm:
        key = None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise ConfigError(
            f"{path} is not the .pub of a key that Flower takes; the party makes one with fedfuse flower key"
        )
    return key


def fingerprint(public: ec.EllipticCurvePublicKey) -> str:
    """What two people compare on the telephone; ssh-keygen -l says the same."""
    blob = base64.b64decode(public.public_bytes(*OPENSSH).split()[1])
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def check_server(folder: Path, host: str | None, now: datetime | None = None) -> None:
    """Raise with the reason why a SuperLink could not use this folder's keys, or not under the name ``host``."""
    ca = read_in_time(folder / CA, NEW_AUTHORITY, now)
    certificate = read_in_time(folder / CERTIFICATE, RENEW, now)
    key = _private(folder / KEY)
    if _bytes_of(key.public_key()) != _bytes_of(certificate.public_key()):
        raise ConfigError(f"{folder / KEY} is not the key of {folder / CERTIFICATE}; take both from one keys folder")
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        raise ConfigError(
            f"{folder / CERTIFICATE} was not signed by {folder / CA}; take both from one keys folder"
        ) from None
    known = hosts_of(certificate)
    if host is not None and host not in known:
        raise ConfigError(
            f"{folder / CERTIFICATE} is for {', '.join(known)}, not for {host}; add it with "
            f"fedfuse flower keys {folder} --renew --host {host}"
        )


def check_node(folder: Path, client: int, now: datetime | None = None) -> None:
    """Raise with the reason why this client's node could not use this folder's keys."""
    read_in_time(folder / CA, NEW_AUTHORITY, now)
    path = folder / node_key(client)
    key = read(path, lambda data: serialization.load_ssh_private_key(data, None), "a private key")
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{path} is not a key of an elliptic curve; make one with fedfuse flower key")


def ending(folder: Path, now: datetime | None = None) -> list[str]:
    """What to say of this folder's certificates whose end is near."""
    return [*expires_soon(folder / CA, NEW_AUTHORITY, now), *expires_soon(folder / CERTIFICATE, RENEW, now)]


def _write_private(path: Path, key: Any, form: serialization.PrivateFormat) -> None:
    """Readable by its owner only, from its first byte on."""
    content = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _private(path: Path) -> Any:
    return read(path, lambda data: serialization.load_pem_private_key(data, None), "a private key")


def _bytes_of(public: Any) -> bytes:
    return public.public_bytes(  # type: ignore[no-any-return]
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
