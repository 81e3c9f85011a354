"""FedDistill+: FedAvg whose clients also share their mean logits by label, and learn from each other's.

Seo et al., Federated Knowledge Distillation, 2020, with weights exchanged too, as FedGen (Zhu et al., ICML 2021) and
FedGKD (Yao et al., 2021) compare with.

    client k minimises F_k(w) + lambda T^2 mean_{(x,y)} KL( sigma(G_k[y] / T) || sigma(f(w, x) / T) )
    G_k[y] = mean_{j != k} S_j[y] / c_j[y]

Sums go on from visit to visit and counts start at 1, as in both codes: neither paper prints how it counts.
``feddistill-plus-as-coded`` has the settings of FedGen's released code: lambda 1, and the mean over the last round's
participants, the receiver among them.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import LabelLogits
from fedfuse.parts.merge import Mean

FEDDISTILL_PLUS = Method(
    name="feddistill-plus",
    title="FedDistill+",
    citation="Seo et al., 2020",
    brief="FedAvg; clients distil others' logits by label",
    summary="FedAvg whose clients distil each other's mean logits by label, across architectures",
    exchanges="weights and mean logits by label down, weights, logit sums and counts by label up",
    server_keeps="weights, every client's mean logits by label",
    client_keeps="logit sums and counts by label",
    shares_labels=True,
    recipe=Recipe(local=LabelLogits(), merge=Mean()),
)

FEDDISTILL_PLUS_AS_CODED = Method(
    name="feddistill-plus-as-coded",
    title="FedDistill+, as coded",
    citation="Seo et al., 2020, as in the released code of FedGen",
    brief="FedDistill+ as in FedGen's released code",
    summary="FedDistill+ with the settings of FedGen's released code",
    exchanges=FEDDISTILL_PLUS.exchanges,
    server_keeps=FEDDISTILL_PLUS.server_keeps,
    client_keeps=FEDDISTILL_PLUS.client_keeps,
    shares_labels=True,
    recipe=Recipe(local=LabelLogits(coefficient=1.0, send="participants"), merge=Mean()),
)
