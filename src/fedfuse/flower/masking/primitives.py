"""The cryptography of masks: Flower's own primitives of SecAgg+, and AES for the masks themselves.

Flower's ``pseudo_rand_gen`` is not used: it folds a key into 32 bits, which anybody can try out. A mask here is the key
stream of AES-256 in counter mode, as in Bonawitz et al.; each of its keys is new and makes one stream.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from cryptography.fernet import InvalidToken
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.common.secure_aggregation.crypto.shamir import combine_shares, create_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import decrypt, encrypt, generate_shared_key
from flwr.supercore.primitives.asymmetric import generate_key_pairs

from fedfuse.federation.engine import Residues

CURVE = ec.SECP384R1()
SEED, SECRET, PUBLIC = 32, 48, 49
"""Bytes of a mask's seed, and of the two halves of a key."""
SEED_SHARE, SECRET_SHARE = 52, 68
"""Bytes of shares of them: a number, and the padded secret in blocks of 16."""
LETTER, SEALED = 8 + SECRET_SHARE + SEED_SHARE, 268
"""Bytes of what one party sends to another, and of the same sealed."""
MOST_TRIED = 100
"""Sets of shares that are tried, where some are wrong."""


def fresh_pair() -> tuple[bytes, bytes]:
    """A secret and its public half."""
    private, public = generate_key_pairs()
    return private.private_numbers().private_value.to_bytes(SECRET, "big"), _as_bytes(public)


def fresh_seed() -> bytes:
    return secrets.token_bytes(SEED)


def public_of(secret: bytes) -> bytes:
    return _as_bytes(_private(secret).public_key())


def is_public(key: bytes) -> bool:
    """Whether this is a point of the curve."""
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(CURVE, key)
    except ValueError:
        return False
    return True


def agreed(secret: bytes, public: bytes) -> bytes:
    """The key that two parties have in common, each by its own secret and the other's public half."""
    other = ec.EllipticCurvePublicKey.from_encoded_point(CURVE, public)
    return bytes(generate_shared_key(_private(secret), other))


def mask(key: bytes, like: Residues) -> Residues:
    """Numbers as many and as wide as these, uniform in all that they can be."""
    stream = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
    numbers = np.frombuffer(stream.update(bytes(like.nbytes)), dtype=like.dtype.newbyteorder("<"))
    return numbers.astype(like.dtype, copy=False)


def pair_mask(secret: bytes, public: bytes, like: Residues) -> Residues:
    """The mask between two parties."""
    return mask(base64.urlsafe_b64decode(agreed(secret, public)), like)


def commitment(seed: bytes) -> bytes:
    """By which a seed is known again, and not found."""
    return hashlib.sha256(seed).digest()


def shares_of(secret: bytes, threshold: int, number: int) -> list[bytes]:
    return list(create_shares(secret, threshold, number))


def secret_of(shares: Sequence[bytes], threshold: int, is_right: Callable[[bytes], bool]) -> bytes | None:
    """The secret that so many of the shares give, wrong ones left out; None if they give none that is right."""
    by_number = {share[:4]: share for share in shares if any(share[:4])}
    for some in _sets(list(by_number.values()), threshold):
        try:
            secret = bytes(combine_shares(some))
        except (ValueError, IndexError):
            continue
        if is_right(secret):
            return secret
    return None


def _sets(shares: list[bytes], threshold: int) -> Iterator[list[bytes]]:
    """So many neighbouring ones, all around: some set has none of a few wrong ones, if there are more than needed."""
    turns = len(shares) if len(shares) > threshold else len(shares) // threshold
    for first in range(min(turns, MOST_TRIED)):
        yield (shares + shares)[first : first + threshold]


def sealed(key: bytes, sender: int, recipient: int, secret_share: bytes, seed_share: bytes) -> bytes:
    """A letter that nobody but the recipient can read."""
    names = sender.to_bytes(4, "big") + recipient.to_bytes(4, "big")
    return bytes(encrypt(key, names + secret_share + seed_share))


def unsealed(key: bytes, sender: int, recipient: int, letter: bytes) -> tuple[bytes, bytes] | None:
    """The shares in a letter from one party to another; None if it is not that."""
    try:
        plain = bytes(decrypt(key, letter))
    except (InvalidToken, ValueError):
        return None
    if len(plain) != LETTER or plain[:8] != sender.to_bytes(4, "big") + recipient.to_bytes(4, "big"):
        return None
    return plain[8 : 8 + SECRET_SHARE], plain[8 + SECRET_SHARE :]


def _private(secret: bytes) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(secret, "big"), CURVE)


def _as_bytes(public: ec.EllipticCurvePublicKey) -> bytes:
    return bytes(public.public_bytes(Encoding.X962, PublicFormat.CompressedPoint))
