"""Runs of thousands of rounds, in which nothing grows."""
