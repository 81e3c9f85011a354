"""The communication protocol: full weights travel, one layer of them, predictions (logits), votes, or nothing."""

from typing import Annotated

from fedfuse.core.choice import OneOf
from fedfuse.parts.protocol.base import ClientResult, Expected, Protocol
from fedfuse.parts.protocol.client_distillation import ClientDistillation
from fedfuse.parts.protocol.layers import LayerByLayer
from fedfuse.parts.protocol.nothing import NoExchange
from fedfuse.parts.protocol.predictions import Predictions
from fedfuse.parts.protocol.votes import Votes
from fedfuse.parts.protocol.weights import FullWeights

AnyProtocol = Annotated[Protocol, OneOf(FullWeights, LayerByLayer, Predictions, Votes, NoExchange)]

__all__ = [
    "AnyProtocol",
    "ClientDistillation",
    "ClientResult",
    "Expected",
    "FullWeights",
    "LayerByLayer",
    "NoExchange",
    "Predictions",
    "Protocol",
    "Votes",
]
