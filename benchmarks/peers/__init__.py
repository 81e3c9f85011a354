"""Other packages that do the same work, each in an environment of its own (docs/performance.md)."""
