"""Estimates beside the runs that they are about."""
