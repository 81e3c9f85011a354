"""Local only: every client learns alone. The bound below which a federation is not worth its trouble."""

from fedfuse.federation import Recipe
from fedfuse.methods.base import Method
from fedfuse.parts.local import Plain
from fedfuse.parts.protocol import NoExchange

LOCAL_ONLY = Method(
    name="local-only",
    title="Local only",
    citation="a bound",
    brief="every client trains alone",
    summary="every client trains alone; accuracies are means over the clients' own models",
    exchanges="initial weights down once",
    server_keeps="nothing",
    client_keeps="its model",
    mixes_architectures=False,
    is_bound=True,
    recipe=Recipe(protocol=NoExchange(), local=Plain()),
)
