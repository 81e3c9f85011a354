"""True labels: FedAvg, then training on the public inputs and their true labels, as a perfect ensemble would teach.

The last row of FedBE's Table 2 (Chen and Chao, 2021): what distillation could gain at most from these public inputs.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, TrueLabels
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean

TRUE_LABELS = Method(
    name="true-labels",
    title="True labels",
    citation="a bound; Chen and Chao, ICLR 2021, Table 2",
    brief="train on true labels in place of distillation",
    summary="average, then train on the public inputs' true labels in the place of distillation",
    exchanges="weights down, weights up",
    server_keeps="weights, public inputs and their labels",
    mixes_architectures=False,
    is_bound=True,
    recipe=Recipe(local=Plain(), merge=Mean(), fuse=TrueLabels(distiller=Distiller(loss="hard"))),
)
