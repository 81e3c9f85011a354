"""FedDF: average, then distil the ensemble of all received models into every architecture's student.

Lin, Kong, Stich and Jaggi, Ensemble Distillation for Robust Model Fusion in Federated Learning, NeurIPS 2020.

    x_{t,0} = average of the prototype's own clients
    x_{t,j} = x_{t,j-1} - eta d KL( sigma(mean_k f(xhat_k, d)), sigma(f(x_{t,j-1}, d)) ) / d x_{t,j-1}

``feddf`` is the method as printed. ``feddf-as-coded`` has the settings of the released code where it differs (epfml/
federated-learning-public-code): clients averaged uniformly, batch 64, fresh augmented views, gradients clipped at 5,
models that no client of the round runs left alone.
Its patience of 1000 is the paper's and the README's; the code's own default is 2000.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean

FEDDF = Method(
    name="feddf",
    title="FedDF",
    citation="Lin et al., NeurIPS 2020",
    brief="distil the ensemble of all client models",
    summary="distil the ensemble of client models, across architectures",
    exchanges="weights down, weights up",
    server_keeps="weights of every architecture, unlabelled inputs",
    recipe=Recipe(local=Plain(), merge=Mean(), fuse=EnsembleDistillation()),
)

FEDDF_AS_CODED = Method(
    name="feddf-as-coded",
    title="FedDF, as coded",
    citation="Lin et al., NeurIPS 2020, released code",
    brief="FedDF with the settings of its released code",
    summary="FedDF with the settings of its released code instead of the printed ones",
    exchanges=FEDDF.exchanges,
    server_keeps=FEDDF.server_keeps,
    recipe=Recipe(
        local=Plain(),
        merge=Mean(weighting="uniform"),
        fuse=EnsembleDistillation(
            views="augmented",
            absent="keep",
            distiller=Distiller(batch_size=64, clip_norm=5.0, patience=1000),
        ),
    ),
)
