"""The certificates of a deployment: an authority of its own signs that of the SuperLink, as often as it takes."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID

from fedfuse.core.errors import ConfigError

AUTHORITY = "fedfuse federation"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LARGEST = 1 << 16
"""Bytes of a key or certificate, with room to spare."""
SOON = timedelta(days=30)
"""How long before its end a certificate is spoken of."""


def authority(key: Any, days: int, now: datetime) -> x509.Certificate:
    """The certificate of the authority itself, by which everybody knows the others."""
    return _sign(AUTHORITY, key.public_key(), key, x509.BasicConstraints(True, 0), now, now + timedelta(days=days))


def certificate_of(public: Any, hosts: Iterable[str], signer: Any, now: datetime, end: datetime) -> x509.Certificate:
    """The SuperLink's, for the loopback names and these."""
    names = x509.SubjectAlternativeName([_name(host) for host in dict.fromkeys([*LOOPBACK, *hosts])])
    return _sign("fedfuse superlink", public, signer, names, now, end)


def hosts_of(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in names]


def read(path: Path, load: Callable[[bytes], Any], what: str) -> Any:
    """What a file of keys holds, or the reason why it does not; a .pub comes from elsewhere and may be endless."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        return load(content if len(content) <= LARGEST else b"")
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}; make keys with fedfuse flower keys, or name their folder"
        ) from None
    except (ValueError, TypeError):
        raise ConfigError(f"{path} does not hold {what}; take it from the keys folder again") from None


def read_certificate(path: Path) -> x509.Certificate:
    return read(path, x509.load_pem_x509_certificate, "a certificate")


def read_in_time(path: Path, mend: str, now: datetime | None = None) -> x509.Certificate:
    """A certificate that is valid today; ``mend`` says what to do about one that is not any more."""
    certificate = read_certificate(path)
    now = now or datetime.now(UTC)
    if now > certificate.not_valid_after_utc:
        raise ConfigError(f"{path} expired on {certificate.not_valid_after_utc:%Y-%m-%d}; {mend}")
    if now < certificate.not_valid_before_utc:
        raise ConfigError(f"{path} is valid from {certificate.not_valid_before_utc:%Y-%m-%d} on; check this clock")
    return certificate


def expires_soon(path: Path, mend: str, now: datetime | None = None) -> list[str]:
    """One sentence about a certificate whose end is near, and none about any other, or one that cannot be read."""
    if not os.access(path, os.R_OK):
        return []
    end = read_certificate(path).not_valid_after_utc
    left = end - (now or datetime.now(UTC))
    return [f"{path} expires on {end:%Y-%m-%d}, in {max(left.days, 0)} days; {mend}"] if left < SOON else []


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)  # type: ignore[no-any-return]


def _sign(subject: str, public: Any, signer: Any, extension: Any, now: datetime, end: datetime) -> x509.Certificate:
    def named(name: str) -> x509.Name:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])

    builder = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named(AUTHORITY))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(end)
        .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return builder.sign(signer, hashes.SHA384())


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
