"""Compression, clipping and noise of client uploads: links between a client's answer and the wire.

clip and noise are the mechanism of differential privacy, without an account of it; half, one_bit, top_k and soft_labels
are compression (quantisation, sparsification); partial is partial sharing, for personalization.
"""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.upload.base import Packed, Upload
from fedfuse.parts.upload.chain import Chain
from fedfuse.parts.upload.clip import Clip
from fedfuse.parts.upload.half import HalfPrecision
from fedfuse.parts.upload.noise import Noise
from fedfuse.parts.upload.one_bit import OneBitUpload
from fedfuse.parts.upload.partial import Partial
from fedfuse.parts.upload.soft_labels import SoftLabels
from fedfuse.parts.upload.top_k import TopK

AnyUpload = Annotated[Upload, OneOf(Clip, Noise, HalfPrecision, OneBitUpload, TopK, Partial, SoftLabels)]

__all__ = [
    "AnyUpload",
    "Chain",
    "Clip",
    "HalfPrecision",
    "Noise",
    "OneBitUpload",
    "Packed",
    "Partial",
    "SoftLabels",
    "TopK",
    "Upload",
]
