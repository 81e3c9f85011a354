"""Fusions of checkpoints that are killed, at random moments and at any operation on files."""
