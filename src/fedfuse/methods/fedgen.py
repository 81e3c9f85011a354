"""FedGen: FedAvg whose server trains a generator of features from the clients' classifiers, for clients to learn from.

Zhu, Hong and Zhou, Data-Free Knowledge Distillation for Heterogeneous Federated Learning, ICML 2021.

    server:    G minimises sum_k mean_y( n_k^y / sum_j n_j^y CE(classifier_k(G(eps, y)), y) ) + eta diversity(eps, G)
    client k minimises F_k(w) + alpha_t CE(classifier(G(eps, y~)), y~) + beta_t KL( classifier(G(eps, y)) || f(x) )

``fedgen`` takes the diversity term of the released code, which has a gradient at usual sizes, and its uniform noise;
``fedgen-as-printed`` the term of the paper and Gaussian noise.
"""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Generative, GeneratorSettings
from fedfuse.parts.merge import Mean

FEDGEN = Method(
    name="fedgen",
    title="FedGen",
    citation="Zhu et al., ICML 2021",
    brief="FedAvg with a generator of features by label",
    summary="FedAvg with a generator of features that carries what all clients know about every label",
    exchanges="weights and generator down, weights and label counts up",
    server_keeps="weights, generator and its optimiser's state",
    shares_labels=True,
    recipe=Recipe(local=Generative(), merge=Mean()),
)

FEDGEN_AS_PRINTED = Method(
    name="fedgen-as-printed",
    title="FedGen, as printed",
    citation="Zhu et al., ICML 2021, the paper's diversity term and noise",
    brief="FedGen with the paper's diversity and noise",
    summary="FedGen with the diversity term and the noise of the paper instead of the released code's",
    exchanges=FEDGEN.exchanges,
    server_keeps=FEDGEN.server_keeps,
    shares_labels=True,
    recipe=Recipe(
        local=Generative(generator=GeneratorSettings(distances="norms", distribution="gaussian")), merge=Mean()
    ),
)
