"""What clients claim about themselves counts within bounds that the round's others set (``federation.claims``).

How many examples a client has, which labels, how sure it is: the server cannot look, and means are weighted by it. So a
claim beyond Tukey's fence of the others' counts as if it were at the fence, and one far beyond as the median of theirs
(core/fences.py). Parts say how what their clients tell them is brought down (``MethodPart.within_bounds``). Of answers
about public inputs, those that say nothing that the others say count for nothing (answers.py). Where nobody stands out,
nothing is changed at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fedfuse.core.fences import counted
from fedfuse.core.messages import Tensors, Update, of_part, within
from fedfuse.federation.answers import unlike_in_predictions
from fedfuse.federation.recipe import LOCAL, PROTOCOL, SCORES, Recipe
from fedfuse.federation.settings import Trust
from fedfuse.parts.base import MethodPart


def examples_within_bounds(claimed: Sequence[int]) -> list[int]:
    """How many examples each of a round's clients counts for."""
    return [
        number if size == number else max(1, int(size)) for number, size in zip(claimed, counted(claimed), strict=True)
    ]


class Claims:
    """One round's. ``reasons`` says of whom something counts for less than it claims, and what."""

    def __init__(self, recipe: Recipe, trust: Trust) -> None:
        self.recipe, self.is_bounded = recipe, trust == "bounded"
        self.reasons: dict[int, str] = {}

    def examples(self, claimed: Sequence[int]) -> list[int]:
        """How many examples clients count for that claim so many."""
        return examples_within_bounds(claimed) if self.is_bounded else list(claimed)

    def within_bounds(self, updates: Sequence[Update]) -> list[Update]:
        """The updates as they count."""
        if not self.is_bounded:
            return list(updates)
        self.reasons = {}
        examples = examples_within_bounds([update.examples for update in updates])
        for update, number in zip(updates, examples, strict=True):
            if number < update.examples:
                self.reasons[update.client] = f"claims {update.examples:,} examples, counts as {number:,}"
        said: list[dict[str, Tensors]] = [{} for _ in updates]
        for slot, part in self._listening():
            for own, update, bounded in zip(said, updates, self._told(part, slot, updates, examples), strict=True):
                if bounded is not None:
                    own[slot] = bounded
                    self.reasons.setdefault(update.client, f"claims more than the others do to {slot} {part.kind}")
        return [_with(*one) for one in zip(updates, examples, said, strict=True)]

    def unlike_the_others(self, updates: Sequence[Update]) -> dict[int, str]:
        """Whose answers about the public inputs count for nothing, and why."""
        return unlike_in_predictions(updates) if self.is_bounded else {}

    def _listening(self) -> list[tuple[str, MethodPart]]:
        """The parts that let clients tell them something, by their slots."""
        parts = ((PROTOCOL, self.recipe.protocol), (SCORES, self.recipe.scores), (LOCAL, self.recipe.local))
        return [(slot, part) for slot, part in parts if type(part).within_bounds is not MethodPart.within_bounds]

    def _told(
        self, part: MethodPart, slot: str, updates: Sequence[Update], examples: Sequence[int]
    ) -> list[Tensors | None]:
        """What each client told a part, as it counts; None where it is as it came."""
        came = [of_part(slot, update.extras) for update in updates]
        speaking = [place for place, own in enumerate(came) if own]
        if not speaking:
            return [None for _ in updates]
        bounded = part.within_bounds([came[place] for place in speaking], [examples[place] for place in speaking])
        counted = dict(zip(speaking, bounded, strict=True))
        return [counted[place] if counted.get(place, own) is not own else None for place, own in enumerate(came)]


def _with(update: Update, examples: int, said: Mapping[str, Tensors]) -> Update:
    if not said and examples == update.examples:
        return update
    told = {name: tensor for slot, tensors in said.items() for name, tensor in within(slot, tensors).items()}
    return replace(update, examples=examples, extras={**update.extras, **told})
