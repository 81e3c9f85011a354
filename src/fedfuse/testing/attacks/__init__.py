"""Hostile clients, for experiments about defences: ``attack: {kind: sign_flip, clients: 0.2}`` (docs/robustness.md).

Each file is one attack with its citation. An attack of one's own is a ``fedfuse.Attack`` named by its address.
"""

from fedfuse.federation.attack import Attack, Situation
from fedfuse.testing.attacks.a_little_is_enough import ALittleIsEnough
from fedfuse.testing.attacks.backdoor import Backdoor, stamped, success_rate
from fedfuse.testing.attacks.claims import FalseClaims
from fedfuse.testing.attacks.extras import FalseExtras
from fedfuse.testing.attacks.free_rider import FreeRider
from fedfuse.testing.attacks.gaussian import Gaussian
from fedfuse.testing.attacks.inner_product import InnerProduct
from fedfuse.testing.attacks.label_flip import LabelFlip
from fedfuse.testing.attacks.loud import Loud
from fedfuse.testing.attacks.mimic import Mimic
from fedfuse.testing.attacks.min_max import MinMax
from fedfuse.testing.attacks.predictions import FalsePredictions
from fedfuse.testing.attacks.scaled import Scaled
from fedfuse.testing.attacks.sign_flip import SignFlip

KINDS = (
    SignFlip, Scaled, Gaussian, LabelFlip, Backdoor, ALittleIsEnough, InnerProduct, MinMax, Mimic, FalseClaims,
    FreeRider, FalsePredictions, Loud, FalseExtras,
)  # fmt: skip

__all__ = [
    "KINDS",
    "ALittleIsEnough",
    "Attack",
    "Backdoor",
    "FalseClaims",
    "FalseExtras",
    "FalsePredictions",
    "FreeRider",
    "Gaussian",
    "InnerProduct",
    "LabelFlip",
    "Loud",
    "Mimic",
    "MinMax",
    "Scaled",
    "SignFlip",
    "Situation",
    "stamped",
    "success_rate",
]
