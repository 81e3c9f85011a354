"""v-Distillation, the vanilla distillation that FedBE compares with: clients only, SGD without SWA.

Chen and Chao, FedBE: Making Bayesian Model Ensemble Applicable to Federated Learning, ICLR 2021, section 5.

    p_j = (1/|S|) sum_i p(y | x_j; w_i), sharpened;   student from w', SGD
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean
from fedfuse.runtime.optimizers import Sgd

V_DISTILLATION = Method(
    name="v-distillation",
    title="v-Distillation",
    citation="Chen and Chao, ICLR 2021",
    brief="distil mean probabilities with plain SGD",
    summary="distil the clients' mean probabilities with plain SGD",
    exchanges="weights down, weights up",
    server_keeps="weights, unlabelled inputs",
    recipe=Recipe(
        local=Plain(),
        merge=Mean(),
        fuse=EnsembleDistillation(
            target="mean_probabilities",
            sharpening=2.0,
            views="student",
            distiller=Distiller(
                epochs=20,
                optimizer=Sgd(learning_rate=1e-3, momentum=0.9),
                schedule="constant",
                keep="last",
            ),
        ),
    ),
)
