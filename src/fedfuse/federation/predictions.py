"""What clients say together, where predictions are what they send: about public inputs, and about test inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from fedfuse.core.messages import Tensors, Update, of_part
from fedfuse.federation.recipe import PROTOCOL, SCORES, Recipe
from fedfuse.parts.context import CombinedPredictions
from fedfuse.parts.protocol.base import PREDICTIONS
from fedfuse.parts.scores import Said


def combined(
    recipe: Recipe, asked: Tensor | None, updates: Sequence[Update], rows: Tensor | None = None
) -> CombinedPredictions:
    """On the round's public inputs, or on these rows of them; ``asked`` are their positions among those with scores."""
    outputs = [_at(update.of(PROTOCOL).extras[PREDICTIONS], rows) for update in updates]
    scores = [update.of(SCORES).extras for update in updates]
    if recipe.scores.per_input:
        scores = [{name: _at(_at(t, asked), rows) for name, t in own.items()} for own in scores]
    return _together(recipe, updates, scores, outputs)


def combined_on_test(recipe: Recipe, updates: Sequence[Update]) -> CombinedPredictions:
    """On the test inputs, as it would have been sent: students imitate the same few bits."""
    said = [recipe.protocol.as_sent(update.test_outputs[PREDICTIONS]) for update in updates]
    outputs = [recipe.chain.as_received(one) for one in said]
    scores = [{**update.of(SCORES).extras, **of_part(SCORES, update.test_outputs)} for update in updates]
    return _together(recipe, updates, scores, outputs)


def _together(
    recipe: Recipe, updates: Sequence[Update], scores: Sequence[Tensors], outputs: Sequence[Tensor]
) -> CombinedPredictions:
    are_logits = not recipe.protocol.sends_probabilities
    parts = zip(updates, scores, outputs, strict=True)
    said = [Said(replace(update, extras=own), output, are_logits) for update, own, output in parts]
    return recipe.protocol.combine(outputs, recipe.scores.weights(said))


def _at(table: Tensor, rows: Tensor | None) -> Tensor:
    return table if rows is None else table[rows]
