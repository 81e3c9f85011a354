"""The slots of a method, a folder each, and what a part is shown when it is its turn."""
