"""FedBE, first named FedDistill: distil a Bayesian ensemble of models around the clients, smoothed by SWA.

Chen and Chao, FedBE: Making Bayesian Model Ensemble Applicable to Federated Learning, ICLR 2021.

    w' = sum_i (|D_i| / |D|) w_i;   w^(m) ~ p(w | D), m = 1..M
    p_j = mean over {w'}, {w_i}, {w^(m)} of p(y | x_j; w), sharpened: p_j^2 / sum p_j^2
    student from w', cross-entropy against p_j, SWA

The cross-entropy against a fixed target has the gradient of the KL divergence used here. SGD momentum is the released
code's; the paper prints the rates only.

``fedbe`` is the method as printed. ``fedbe-as-coded`` has the settings of the released code (hongyouc/FedBE) where it
differs: samples of update directions, SWA at a constant rate from step 500, weight decay, a loss averaged over classes.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, EnsembleDistillation, Swa
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean
from fedfuse.parts.teachers import AverageTeacher, ClientTeachers, GaussianTeachers
from fedfuse.runtime.optimizers import Sgd

FEDBE = Method(
    name="fedbe",
    title="FedBE",
    citation="Chen and Chao, ICLR 2021",
    brief="distil a Bayesian ensemble, with SWA",
    summary="distil a Bayesian ensemble of sampled models, clients and average, with SWA",
    exchanges="weights down, weights up",
    server_keeps="weights, unlabelled inputs",
    recipe=Recipe(
        local=Plain(),
        merge=Mean(),
        fuse=EnsembleDistillation(
            teachers=(AverageTeacher(), ClientTeachers(), GaussianTeachers(number=10)),
            target="mean_probabilities",
            sharpening=2.0,
            views="student",
            distiller=Distiller(
                epochs=20,
                optimizer=Sgd(learning_rate=1e-3, momentum=0.9),
                schedule="constant",
                keep="last",
                swa=Swa(),
            ),
        ),
    ),
)

FEDBE_AS_CODED = Method(
    name="fedbe-as-coded",
    title="FedBE, as coded",
    citation="Chen and Chao, ICLR 2021, released code",
    brief="FedBE with the settings of its released code",
    summary="FedBE with the settings of its released code instead of the printed ones",
    exchanges=FEDBE.exchanges,
    server_keeps=FEDBE.server_keeps,
    recipe=Recipe(
        local=Plain(),
        merge=Mean(),
        fuse=EnsembleDistillation(
            teachers=(AverageTeacher(), ClientTeachers(), GaussianTeachers(number=10, form="as_coded")),
            target="mean_probabilities",
            sharpening=2.0,
            views="student",
            distiller=Distiller(
                epochs=20,
                optimizer=Sgd(learning_rate=1e-3, momentum=0.9, weight_decay=1e-5),
                schedule="constant",
                loss="kl_elementwise",
                keep="last",
                swa=Swa(collect_after=500, lowest=1.0),
            ),
        ),
    ),
)
