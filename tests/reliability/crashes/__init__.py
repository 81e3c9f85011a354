"""Runs that die, or whose disk fails, at any of their operations on files."""
