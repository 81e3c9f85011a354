"""FedED: one shot. Clients train alone, predict public inputs, and a fresh student learns their weighted predictions.

Eriksson, Weighted Ensemble Distillation in Federated Learning with Non-IID Data, master's thesis, Chalmers; the weights
w0, w1 and w2 are written out in parts/scores/.

    zT = sum_k w_k z_k;   student <- argmin sum_j || f(x_j) - zT_j ||^2

The student's raw logits are regressed onto probabilities, as in the thesis's code; ``hard`` and ``kl`` are the other
losses. Use it with federation.rounds: 1.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, PredictionDistillation
from fedfuse.parts.local import Plain
from fedfuse.parts.protocol import Predictions
from fedfuse.parts.scores import ByExamples, ByLabels, ByReconstruction
from fedfuse.runtime.optimizers import Adam

CITATION = "Eriksson, thesis, Chalmers"


def _student(epochs: int, learning_rate: float) -> PredictionDistillation:
    optimizer = Adam(learning_rate=learning_rate)
    return PredictionDistillation(
        distiller=Distiller(
            epochs=epochs, batch_size=50, optimizer=optimizer, schedule="constant", loss="mse", keep="last"
        )
    )


FEDED_W0 = Method(
    name="feded-w0",
    title="FedED-w0",
    citation=CITATION,
    brief="one shot, predictions weighted by data size",
    summary="one shot: distil the clients' predictions, weighted by data size",
    exchanges="initial weights down once; predictions on the public inputs up",
    server_keeps="student, public inputs",
    client_keeps="its model",
    recipe=Recipe(protocol=Predictions(), scores=ByExamples(), local=Plain(), fuse=_student(30, 1e-3)),
)

FEDED_W1 = Method(
    name="feded-w1",
    title="FedED-w1",
    citation=CITATION,
    brief="one shot, predictions weighted class by class",
    summary="one shot: distil the clients' predictions, weighted class by class",
    exchanges="initial weights down once; predictions on the public inputs and label counts up",
    server_keeps="student, public inputs",
    client_keeps="its model",
    shares_labels=True,
    recipe=Recipe(protocol=Predictions(), scores=ByLabels(), local=Plain(), fuse=_student(30, 1e-3)),
)

FEDED_W2 = Method(
    name="feded-w2",
    title="FedED-w2",
    citation=CITATION,
    brief="one shot, predictions weighted by autoencoders",
    summary="one shot: distil the clients' predictions, weighted input by input by autoencoders",
    exchanges="initial weights down once; predictions on the public inputs and reconstruction errors up",
    server_keeps="student, public inputs",
    client_keeps="its model",
    recipe=Recipe(protocol=Predictions(), scores=ByReconstruction(), local=Plain(), fuse=_student(100, 1e-5)),
)
