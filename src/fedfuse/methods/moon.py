"""MOON: FedAvg whose clients keep their features near the received model's and away from their own last one's.

Li, He and Song, Model-Contrastive Federated Learning, CVPR 2021.

    client k minimises F_k(w) + mu mean_x [ -log( p / (p + q) ) ]
    p = e^{cos(z, z_glob) / tau},   q = e^{cos(z, z_prev) / tau}, summed over ``previous`` models
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Contrastive
from fedfuse.parts.merge import Mean

MOON = Method(
    name="moon",
    title="MOON",
    citation="Li et al., CVPR 2021",
    brief="FedAvg with a contrastive term on features",
    summary="FedAvg with a contrastive term between the client's features and two earlier models'",
    exchanges="weights down, weights up",
    server_keeps="weights",
    client_keeps="its previous local model, or several",
    mixes_architectures=False,
    recipe=Recipe(local=Contrastive(), merge=Mean()),
)
