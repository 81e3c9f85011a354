"""FedDF: average, then distil the ensemble of all received models into every architecture's student.

Lin, Kong, Stich and Jaggi, Ensemble Distillation for Robust Model Fusion in Federated Learning, NeurIPS 2020.

    x_{t,0} = average of the prototype's own clients
    x_{t,j} = x_{t,j-1} - eta d KL( sigma(mean_k f(xhat_k, d)), sigma(f(x_{t,j-1}, d)) ) / d x_{t,j-1}
"""

from fedfuse.federation import Recipe
from fedfuse.fusion import EnsembleDistillation
from fedfuse.local import Plain
from fedfuse.merge import Mean
from fedfuse.methods.base import Method

FEDDF = Method(
    name="feddf",
    title="FedDF",
    citation="Lin et al., NeurIPS 2020",
    summary="distil the ensemble of client models, across architectures",
    exchanges="weights down, weights up",
    server_keeps="weights of every architecture, unlabelled inputs",
    recipe=Recipe(local=Plain(), merge=Mean(), fuse=EnsembleDistillation()),
)
