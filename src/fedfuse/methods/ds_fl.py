"""DS-FL: clients' mean prediction on public inputs, sharpened, teaches every client and a model on the server.

Itahara, Nishio, Koda, Morikura and Yamamoto, Distillation-Based Semi-Supervised Federated Learning, 2020.

    entropy reduction:  z_j = softmax( (1/m) sum_k p_k(x_j) / T ),   T = 0.1

p_k are probabilities; with ``protocol.output: logits`` the mean is of logits, as in the released code of CFD ("FDer").
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import Distiller, PredictionDistillation
from fedfuse.parts.local import Plain
from fedfuse.parts.protocol import ClientDistillation, Predictions

DS_FL = Method(
    name="ds-fl",
    title="DS-FL",
    citation="Itahara et al., 2020",
    brief="distil a sharpened mean prediction",
    summary="sharpen the clients' mean prediction on public inputs and distil it into clients and server",
    exchanges="initial weights down once; predictions on the public inputs up and down",
    server_keeps="student, public inputs, the last consensus",
    client_keeps="its model",
    recipe=Recipe(
        protocol=Predictions(temperature=0.1, distillation=ClientDistillation(loss="kl")),
        local=Plain(),
        fuse=PredictionDistillation(start="previous", distiller=Distiller(epochs=1, schedule="constant", keep="last")),
    ),
)
