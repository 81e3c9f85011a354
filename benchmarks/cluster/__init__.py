"""make cluster-model: what a round costs here, what that predicts for a cluster, and whether it is true here."""
