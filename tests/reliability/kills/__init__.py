"""Runs that are killed at random moments, on any engine."""
