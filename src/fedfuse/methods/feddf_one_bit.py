"""FedDF with one-bit clients: binary weights on the clients and on the way up, a full-precision student on the server.

Lin, Kong, Stich and Jaggi, Ensemble Distillation for Robust Model Fusion in Federated Learning, NeurIPS 2020, Table 4.

    every step:  w <- w + e;  q = Q(w);  e <- w - q;  w <- q          fusion as FedDF
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import EnsembleDistillation
from fedfuse.parts.local import OneBit
from fedfuse.parts.merge import Mean
from fedfuse.parts.upload import OneBitUpload

FEDDF_ONE_BIT = Method(
    name="feddf-one-bit",
    title="FedDF, 1-bit clients",
    citation="Lin et al., NeurIPS 2020",
    brief="FedDF whose clients send one bit per weight",
    summary="FedDF whose clients train and send binary weights, with error feedback",
    exchanges="weights down; one bit per weight and two numbers per filter up",
    server_keeps="weights of every architecture, unlabelled inputs",
    client_keeps="its quantisation error",
    recipe=Recipe(upload=(OneBitUpload(),), local=OneBit(), merge=Mean(), fuse=EnsembleDistillation()),
)
