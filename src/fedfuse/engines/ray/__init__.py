"""Clients as tasks on Ray."""
