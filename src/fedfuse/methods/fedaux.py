"""FedAUX: FedDF whose teachers count input by input, by how much the input looks like the client's own data.

Sattler, Korjakow, Rischke and Samek, FedAUX: Leveraging Unlabeled Auxiliary Data in Federated Learning, 2021.

    start:   features learnt from the public inputs by contrast (SimCLR)
    once:    s_k(x_j), the certainty that x_j is client k's, by a private logistic regression on those features
    round:   average, then distil softmax( sum_k s_k(x_j) f(xhat_k, x_j) / sum_k s_k(x_j) ) for one pass

The scores are written out in parts/scores/certainty.py; ``scores.epsilon`` makes them private.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, EnsembleDistillation
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean
from fedfuse.parts.scores import ByCertainty
from fedfuse.parts.start import Contrast
from fedfuse.runtime.optimizers import Adam

FEDAUX = Method(
    name="fedaux",
    title="FedAUX",
    citation="Sattler et al., 2021",
    brief="distil; clients weighted input by input",
    summary="distil the ensemble, each client weighted by how much an input looks like its own data",
    exchanges="weights down, weights up; once: initial weights down, a score per public input up",
    server_keeps="weights of every architecture, public inputs, every client's scores, the initial weights",
    client_keeps="its logistic regression, the initial weights",
    recipe=Recipe(
        start=Contrast(),
        scores=ByCertainty(),
        local=Plain(),
        merge=Mean(),
        fuse=EnsembleDistillation(
            distiller=Distiller(
                epochs=1, batch_size=128, optimizer=Adam(learning_rate=5e-5), schedule="constant", keep="last"
            ),
        ),
    ),
)
