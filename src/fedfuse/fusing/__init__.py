"""Trained models into one: reading what others saved, asking it, and teaching or merging one model from it."""
