"""One experiment in several variants: which keys vary over which values, and what each variant is called."""

from fedfuse.experiment.variants.axes import Axis, Range, axes_of
from fedfuse.experiment.variants.words import differences, folder_words, named, words_of

__all__ = ["Axis", "Range", "axes_of", "differences", "folder_words", "named", "words_of"]
