"""FD: clients exchange nothing but mean logits per label.

Jeong, Oh, Kim, Park, Bennis and Kim, Communication-Efficient On-Device Machine Learning, 2018.

    minimise F_k(w) + lambda mean_{(x,y)} KL( sigma(G_k[y]) || sigma(f(w, x)) ),   G_k[y] = mean_{j != k} of client j's
                                                                                mean logits for examples of label y

It is FedDistill+ without the exchange of models, and with the means as printed: of one round's logits, and true means.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import LabelLogits
from fedfuse.parts.protocol import NoExchange

FD = Method(
    name="fd",
    title="FD",
    citation="Jeong et al., 2018",
    brief="clients distil others' mean logits by label",
    summary="pull each client's outputs towards the others' mean logits for the same label",
    exchanges="initial weights down once; mean logits per label down, sums and counts per label up",
    server_keeps="mean logits per label of every client",
    client_keeps="its model",
    shares_labels=True,
    recipe=Recipe(protocol=NoExchange(), local=LabelLogits(sums="each_visit", count_from=0)),
)
