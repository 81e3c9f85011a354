"""FedAvgM: FedAvg with momentum on the server.

Hsu et al., Measuring the Effects of Non-Identical Data Distribution for Federated Visual Classification, 2019.

    v <- beta v + (x_{t-1} - avg);   x_t = x_{t-1} - v
"""

from fedfuse.federation import Recipe
from fedfuse.local import Plain
from fedfuse.merge import Momentum
from fedfuse.methods.base import Method

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
