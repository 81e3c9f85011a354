"""A Flower app around an experiment of fedfuse, as ``fedfuse flower new`` makes it."""
