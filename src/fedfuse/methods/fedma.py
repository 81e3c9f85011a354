"""FedMA: matched averaging, layer by layer, with matched layers frozen and the rest trained again.

Wang, Yurochkin, Sun, Papailiopoulos and Khazaeni, Federated Learning with Matched Averaging, ICLR 2020.

    for layer l = 1 .. L-1:   match the clients' neurons of layer l by a Hungarian assignment, average them,
                              freeze the layer, bring layer l+1 into its order, train layers l+1 .. L again
    layer L:                  average class by class, with weights n_k^c / sum_j n_j^c

A network of L weight layers takes L rounds, and changes on the server at the end of them. Its layers may grow. The
matching is written out in parts/merge/matching.py, what travels in parts/protocol/layers.py. Networks with norm layers
or shortcuts are refused. The constants are those of the released code.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Matched
from fedfuse.parts.protocol import LayerByLayer

FEDMA = Method(
    name="fedma",
    title="FedMA",
    citation="Wang et al., ICLR 2020",
    brief="match neurons before averaging, layer by layer",
    summary="match neurons before averaging them, one layer per round, and train the layers above again",
    exchanges="weights down every L rounds; then one matched layer and the client's places in it down, one layer up",
    server_keeps="weights, layers matched so far, places of the clients' neurons",
    client_keeps="its unmatched layers, until the last one is matched",
    shares_labels=True,
    mixes_architectures=False,
    recipe=Recipe(protocol=LayerByLayer(), local=Plain(), merge=Matched()),
)
