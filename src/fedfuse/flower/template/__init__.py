"""The files of a new app, as ``fedfuse flower new`` copies them."""
