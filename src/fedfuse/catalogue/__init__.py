"""What there is to choose from, told without torch or NumPy, so that a list is there at once."""
