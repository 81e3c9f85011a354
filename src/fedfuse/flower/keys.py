"""Certificates and keys of a deployment: made in one go, and looked at before anything is started with them.

    ca.crt                        everybody has it: who signed the SuperLink's certificate
    server.pem, server.key        the SuperLink's alone
    client-N, client-N.pub        a node's key, its owner's alone, and what the SuperLink is told of it

The authority's own key signs one certificate and is then forgotten: new keys are made with a new authority.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_bytes

CA, CERTIFICATE, KEY = "ca.crt", "server.pem", "server.key"
AUTHORITY = "fedfuse federation"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def node_key(client: int) -> str:
    return f"client-{client}"


def make_keys(folder: Path, nodes: int, hosts: Sequence[str], days: int, now: datetime | None = None) -> None:
    """Write a whole new set into a folder that has none."""
    if any((folder / name).exists() for name in (CA, CERTIFICATE, KEY)):
        raise ConfigError(
            f"{folder} has keys already; choose another folder, or delete it if nobody uses them any more"
        )
    now = now or datetime.now(UTC)
    authority, server = (ec.generate_private_key(ec.SECP384R1()) for _ in range(2))
    names = x509.SubjectAlternativeName([_name(host) for host in dict.fromkeys([*LOOPBACK, *hosts])])
    ca = _sign(AUTHORITY, authority, authority, x509.BasicConstraints(True, 0), days, now)
    certificate = _sign("fedfuse superlink", server, authority, names, days, now)
    folder.mkdir(parents=True, exist_ok=True)
    _write_private(folder / KEY, server, serialization.PrivateFormat.PKCS8)
    for client in range(nodes):
        key = ec.generate_private_key(ec.SECP384R1())
        _write_private(folder / node_key(client), key, serialization.PrivateFormat.OpenSSH)
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
        write_bytes(folder / f"{node_key(client)}.pub", public + b"\n")
    write_bytes(folder / CA, ca.public_bytes(serialization.Encoding.PEM))
    write_bytes(folder / CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM))


def check_server(folder: Path, host: str | None, now: datetime | None = None) -> None:
    """Raise with the reason why a SuperLink could not use this folder's keys, or not under the name ``host``."""
    ca, certificate = (_in_time(folder / name, now) for name in (CA, CERTIFICATE))
    key = _read(folder / KEY, lambda data: serialization.load_pem_private_key(data, None), "a private key")
    if _bytes_of(key.public_key()) != _bytes_of(certificate.public_key()):
        raise ConfigError(f"{folder / KEY} is not the key of {folder / CERTIFICATE}; take both from one keys folder")
    try:
        certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        raise ConfigError(
            f"{folder / CERTIFICATE} was not signed by {folder / CA}; take both from one keys folder"
        ) from None
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    known = [str(name.value) for name in names]
    if host is not None and host not in known:
        raise ConfigError(
            f"{folder / CERTIFICATE} is for {', '.join(known)}, not for {host}; make keys with --host {host}"
        )


def check_node(folder: Path, client: int, now: datetime | None = None) -> None:
    """Raise with the reason why this client's node could not use this folder's keys."""
    _in_time(folder / CA, now)
    path = folder / node_key(client)
    key = _read(path, lambda data: serialization.load_ssh_private_key(data, None), "a private key")
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ConfigError(f"{path} is not a key of an elliptic curve; make keys with fedfuse flower keys")


def _sign(subject: str, key: Any, authority: Any, extension: Any, days: int, now: datetime) -> x509.Certificate:
    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(AUTHORITY))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=days))
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
    )
    return builder.sign(authority, hashes.SHA384())


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_private(path: Path, key: Any, form: serialization.PrivateFormat) -> None:
    """Readable by its owner only, from its first byte on."""
    content = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _in_time(path: Path, now: datetime | None) -> x509.Certificate:
    certificate = _read(path, x509.load_pem_x509_certificate, "a certificate")
    now = now or datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise ConfigError(
            f"{path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; make new keys with fedfuse flower keys and "
            "give every party the new ca.crt and its key"
        )
    if now < certificate.not_valid_before_utc:
        raise ConfigError(f"{path} is valid from {certificate.not_valid_before_utc:%Y-%m-%d} on; check this clock")
    return certificate


def _read(path: Path, load: Callable[[bytes], Any], what: str) -> Any:
    try:
        return load(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}; make keys with fedfuse flower keys, or name their folder"
        ) from None
    except (ValueError, TypeError):
        raise ConfigError(f"{path} does not hold {what}; take it from the keys folder again") from None


def _bytes_of(public: Any) -> bytes:
    return public.public_bytes(  # type: ignore[no-any-return]
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
