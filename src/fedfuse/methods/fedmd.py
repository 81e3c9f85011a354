"""FedMD: clients of any architecture agree on scores for public inputs, round after round; the server has no model.

Li and Wang, FedMD: Heterogenous Federated Learning via Model Distillation, 2019.

    start:  every model learns the labelled public data
    round:  digest   fit the last consensus, mean absolute error of logits, one pass in batches of 256
            revisit  train on the own examples
            send     scores for this round's n random public inputs; consensus = their mean

The first round has no consensus yet, so that its training is FedMD's transfer to the private data. Here public and
private labels are the same; the paper also allows public classes of their own.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Plain
from fedfuse.parts.protocol import ClientDistillation, Predictions
from fedfuse.parts.start import Labelled

FEDMD = Method(
    name="fedmd",
    title="FedMD",
    citation="Li and Wang, 2019",
    brief="clients fit everybody's mean scores, then train",
    summary="clients fit the mean of all clients' scores on public inputs, then train on their own examples",
    exchanges="initial weights down once; scores for the round's public inputs up and down",
    server_keeps="labelled public inputs, the last consensus",
    client_keeps="its model",
    recipe=Recipe(
        start=Labelled(),
        protocol=Predictions(output="logits", distillation=ClientDistillation(loss="mae", epochs=1, batch_size=256)),
        local=Plain(),
    ),
)
