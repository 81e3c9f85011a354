"""Published methods as recipes, one file each, and how methods from elsewhere are found."""

from fedfuse.methods.base import Method
from fedfuse.methods.published import METHODS
from fedfuse.methods.registry import find_method, method_names, origin_of

__all__ = ["METHODS", "Method", "find_method", "method_names", "origin_of"]
