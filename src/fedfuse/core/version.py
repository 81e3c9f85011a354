"""The version of the package. papers/pyproject.toml and CITATION.cff repeat it; a test compares them."""

__version__ = "0.1.0"
