"""Merges of four models that were fine-tuned from one, each on a task of its own (docs/merges.md)."""
