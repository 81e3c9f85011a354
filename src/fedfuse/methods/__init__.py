"""Published methods as recipes, one file each, and how methods from elsewhere are found."""

from fedfuse.catalogue.method_names import method_names
from fedfuse.methods.base import FILE_NAME, Method
from fedfuse.methods.published import METHODS
from fedfuse.methods.registry import find_method, origin_of, usable_methods

__all__ = ["FILE_NAME", "METHODS", "Method", "find_method", "method_names", "origin_of", "usable_methods"]
