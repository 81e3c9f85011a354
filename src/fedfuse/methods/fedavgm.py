"""FedAvgM: FedAvg with momentum on the server.

Hsu et al., Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification, 2019.

    v <- beta v + (x_{t-1} - avg);   x_t = x_{t-1} - v

``fedavgm`` is the form of FedDF's paper. ``fedavgm-as-coded`` is the damped one of FedBE's and MOON's released code,
with FedBE's constants: v <- .9 v + .1 (x_{t-1} - avg) after two rounds that only average.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Momentum

FEDAVGM = Method(
    name="fedavgm",
    title="FedAvgM",
    citation="Hsu et al., 2019",
    summary="FedAvg with server momentum",
    exchanges="weights down, weights up",
    server_keeps="weights, velocity",
    mixes_architectures=False,
    recipe=Recipe(local=Plain(), merge=Momentum()),
)

FEDAVGM_AS_CODED = Method(
    name="fedavgm-as-coded",
    title="FedAvgM, as coded",
    citation="Hsu et al., 2019, as in the released code of FedBE",
    brief="FedAvg with damped momentum, after a warm-up",
    summary="FedAvg with damped server momentum, after a warm-up",
    exchanges=FEDAVGM.exchanges,
    server_keeps=FEDAVGM.server_keeps,
    mixes_architectures=False,
    recipe=Recipe(local=Plain(), merge=Momentum(form="damped", beta=0.9, warm_up=2)),
)
