"""FedProx: FedAvg whose clients are held near the weights they received.

Li et al., Federated Optimization in Heterogeneous Networks, MLSys 2020.

    client k minimises F_k(w) + (mu / 2) ||w - x_{t-1}||^2
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Proximal
from fedfuse.parts.merge import Mean

FEDPROX = Method(
    name="fedprox",
    title="FedProx",
    citation="Li et al., MLSys 2020",
    brief="FedAvg with a proximal term in the loss",
    summary="FedAvg with a proximal term in the clients' loss",
    exchanges="weights down, weights up",
    server_keeps="weights",
    mixes_architectures=False,
    recipe=Recipe(local=Proximal(), merge=Mean()),
)
