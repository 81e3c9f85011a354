"""FedGKD+: FedGKD on models with a projection head.

Yao et al., Local-Global Knowledge Distillation in Heterogeneous Federated Learning with Non-IID Data, 2021.

    FedGKD's objective; h ends in Linear d-d, ReLU, Linear d-256, classifier (models.<name>.projection_head: 256)
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import GlobalDistillation
from fedfuse.parts.merge import Mean

FEDGKD_PLUS = Method(
    name="fedgkd-plus",
    title="FedGKD+",
    citation="Yao et al., 2021",
    summary="FedGKD on models with a projection head",
    exchanges="weights and averaged past weights down, weights up",
    server_keeps="weights of the last M rounds",
    mixes_architectures=False,
    recipe=Recipe(local=GlobalDistillation(needs_projection_head=True), merge=Mean()),
)
