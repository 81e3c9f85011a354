"""Compression, clipping and noise of client uploads: links between a client's answer and the wire.

clip, noise and statistics are mechanisms of differential privacy, which ``privacy`` counts (docs/privacy.md); half,
one_bit, top_k and soft_labels are compression (quantisation, sparsification); partial is partial sharing, for
personalization.
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
from fedfuse.parts.upload.statistics import Statistics
from fedfuse.parts.upload.top_k import TopK

AnyUpload = Annotated[Upload, OneOf(Clip, Noise, Statistics, HalfPrecision, OneBitUpload, TopK, Partial, SoftLabels)]

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
    "Statistics",
    "TopK",
    "Upload",
]
