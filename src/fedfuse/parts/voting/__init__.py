"""An ensemble's vote: what its members say, of whatever classes and however loud, as one answer; which way is best."""

from fedfuse.parts.voting.choosing import Choice, Measures, Row, compare, measured, ways_to_vote
from fedfuse.parts.voting.label_sets import LabelSets
from fedfuse.parts.voting.loudness import Loudness
from fedfuse.parts.voting.voting import FittedVoting, Heard, Voting, Weighting

__all__ = [
    "Choice",
    "FittedVoting",
    "Heard",
    "LabelSets",
    "Loudness",
    "Measures",
    "Row",
    "Voting",
    "Weighting",
    "compare",
    "measured",
    "ways_to_vote",
]
