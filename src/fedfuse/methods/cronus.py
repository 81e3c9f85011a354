"""Cronus: a robust mean of the clients' predictions, learnt by every client together with its own examples.

Chang, Shejwalkar, Shokri and Houmansadr, Cronus: Robust and Heterogeneous Collaborative Learning with Black-Box
Knowledge Transfer, 2019.

    consensus z_j = robust mean of the clients' p_k(x_j) (parts/scores/agreement.py)
    client:  minimise F_k(w) + mean_j KL( z_j || p(w, x_j) )

The first round, without a consensus, is the paper's initialisation phase. The server has no model.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Plain
from fedfuse.parts.protocol import ClientDistillation, Predictions
from fedfuse.parts.scores import ByAgreement

CRONUS = Method(
    name="cronus",
    title="Cronus",
    citation="Chang et al., 2019",
    brief="clients learn a robust mean of predictions",
    summary="clients learn a robust mean of all predictions on public inputs along with their own examples",
    exchanges="initial weights down once; predictions on the public inputs up and down",
    server_keeps="public inputs, the last consensus",
    client_keeps="its model",
    recipe=Recipe(
        protocol=Predictions(distillation=ClientDistillation(when="along", batch_size=64)),
        scores=ByAgreement(),
        local=Plain(),
    ),
)
