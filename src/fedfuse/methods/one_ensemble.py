"""1-Ensemble, FedBE's one-shot baseline: clients train once and for long, and the average of their outputs answers.

Chen and Chao, FedBE: Making Bayesian Model Ensemble Applicable to Federated Learning, ICLR 2021, section 5.

    p(y | x) = (1/|S|) sum_i p(y | x; w_i)

Use it with federation.rounds: 1 and many local epochs (the paper: 200). Its result is the run's ensemble accuracy.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.fuse import EnsembleOnly
from fedfuse.parts.local import Plain
from fedfuse.parts.merge import Mean

ONE_ENSEMBLE = Method(
    name="1-ensemble",
    title="1-Ensemble",
    citation="Chen and Chao, ICLR 2021",
    brief="no fusion: the ensemble itself answers",
    summary="no fusion: the ensemble of client models answers; its accuracy is reported",
    exchanges="weights down, weights up, once",
    server_keeps="all client models",
    recipe=Recipe(local=Plain(), merge=Mean(), fuse=EnsembleOnly()),
    answers_as_ensemble=True,
)
