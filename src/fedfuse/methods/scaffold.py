"""SCAFFOLD: FedAvg whose clients correct their gradients by what they know of everybody else's.

Karimireddy et al., SCAFFOLD: Stochastic Controlled Averaging for Federated Learning, ICML 2020, option II.

    client i:  y <- y - eta (g(y) - c_i + c);   c_i+ = c_i - c + (x_{t-1} - y_i) / (K eta)
    server:    x_t = x_{t-1} + eta_g mean_i (y_i - x_{t-1});   c <- c + (1/N) sum_i (c_i+ - c_i)
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import ControlVariates
from fedfuse.parts.merge import Mean

SCAFFOLD = Method(
    name="scaffold",
    title="SCAFFOLD",
    citation="Karimireddy et al., ICML 2020",
    brief="FedAvg with control variates against drift",
    summary="FedAvg with control variates against client drift",
    exchanges="weights and control variate down, weights and its change up",
    server_keeps="weights, control variate",
    client_keeps="its control variate",
    mixes_architectures=False,
    recipe=Recipe(local=ControlVariates(), merge=Mean(weighting="uniform")),
)
