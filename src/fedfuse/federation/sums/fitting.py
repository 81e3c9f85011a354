"""Why an experiment cannot do with sums of what its clients send: found before round 1, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fedfuse.core.errors import ConfigError
from fedfuse.federation.settings import FederationSettings
from fedfuse.federation.sums.summation import Summation
from fedfuse.parts.accumulator import takes_one_by_one
from fedfuse.parts.base import speaks_for
from fedfuse.parts.local.objective import Objective
from fedfuse.parts.merge.base import AveragingMerge
from fedfuse.parts.protocol import FullWeights, Predictions
from fedfuse.parts.scores import ByExamples, Uniform
from fedfuse.parts.upload import Upload
from fedfuse.runtime.bank import ModelBank

KEY = "federation.secure_sums"
WAY_OUT = (
    "let clients send predictions or votes, whose sum is enough (method.protocol: predictions, scores: uniform, fuse: "
    "prediction_distillation, as in feded-w0), or leave the sums out"
)


def check_sums(
    summation: Summation, settings: FederationSettings, bank: ModelBank, most_in_a_round: Mapping[str, int]
) -> None:
    """Raise a ConfigError with the first reason."""
    for reason in _reasons(summation, settings, bank, most_in_a_round):
        raise ConfigError(f"{KEY} lets the server see sums alone, but {reason}")


def _reasons(
    summation: Summation, settings: FederationSettings, bank: ModelBank, most_in_a_round: Mapping[str, int]
) -> Iterator[str]:
    yield from _about_the_payload(summation)
    yield from _about_links(summation)
    yield from _about_extras(summation, bank)
    yield from _about_the_federation(settings)
    yield from _about_numbers(summation, most_in_a_round)


def _about_the_payload(summation: Summation) -> Iterator[str]:
    """What the server makes of the updates needs no more than their sum."""
    recipe, protocol = summation.recipe, summation.recipe.protocol
    if recipe.pooled:
        yield "this method trains on everybody's examples in one place; remove it"
    if not isinstance(protocol, FullWeights | Predictions):
        sends = "nothing" if protocol.carries == "nothing" else "something else than whole models or predictions"
        yield f"method.protocol {protocol.kind} sends {sends}; use weights, predictions or votes"
    if recipe.screen:
        yield f"method.screen {recipe.screen[0].kind} compares single updates; remove it, or leave the sums out"
    if summation.sends_predictions:
        if not isinstance(recipe.scores, Uniform | ByExamples):
            yield f"method.scores {recipe.scores.kind} weigh single clients; use uniform or examples"
        if getattr(recipe.fuse, "teachers_per_step", 1.0) < 1:
            yield "method.fuse.teachers_per_step hears some clients without the others; set it to 1"
    elif recipe.fuse.reads != "nothing":
        yield f"method.fuse {recipe.fuse.kind} asks single models; {WAY_OUT}"
    elif not isinstance(recipe.merge, AveragingMerge) or not takes_one_by_one(recipe.merge, "merge", "average"):
        yield f"method.merge {recipe.merge.kind} looks at single models; use mean or momentum"


def _about_links(summation: Summation) -> Iterator[str]:
    """Numbers arrive as numbers, and nobody says anything aside."""
    for place, link in enumerate(summation.recipe.upload):
        if type(link).unpack is not Upload.unpack:
            yield f"method.upload[{place}] {link.kind} packs numbers, which then do not add up; remove it"
        if link.aside_spec():
            yield (
                f"method.upload[{place}] {link.kind} lets each client say something aside, as clip does with a "
                "quantile; give it a fixed norm"
            )


def _about_extras(summation: Summation, bank: ModelBank) -> Iterator[str]:
    """What is said beside the payload adds up as well."""
    local = summation.recipe.local
    speaks = any(local.update_spec(bank, prototype) for prototype in bank.prototypes)
    listens = type(local).after_round is not Objective.after_round
    if not speaks and not listens:
        return
    if not local.adds_up or not speaks_for(local, "adds_up", "after_round"):
        yield (
            f"method.local {local.kind} reads what each client says beside its model; use another objective, such as "
            "plain, proximal or control_variates"
        )
    elif speaks and summation.sends_predictions:
        yield f"method.local {local.kind} adds up inside a model, and predictions across all; use another objective"


def _about_the_federation(settings: FederationSettings) -> Iterator[str]:
    """Nobody looks at single updates on the way."""
    for key in ("claims", "moves"):
        if getattr(settings, key) != "taken":
            yield (
                f"federation.{key} is bounded by a look at single updates; set federation.{key} to taken, and know "
                f"that nothing but {KEY}.range contains a client that lies"
            )
    if settings.batch_norm == "last":
        yield "federation.batch_norm last takes the statistics of one client; set it to average"
    if settings.keep_clients:
        yield "federation.keep_clients keeps every client's model; set it to false"
    if settings.clock is not None:
        yield "federation.clock counts by how many examples clients have, which they do not tell; set it to null"


def _about_numbers(summation: Summation, most_in_a_round: Mapping[str, int]) -> Iterator[str]:
    """Enough clients to hide in, and room for what they come to."""
    settings = summation.settings
    together = {"all models": summation.clients} if summation.sends_predictions else most_in_a_round
    for name, most in together.items():
        if most < settings.least:
            yield (
                f"a round has {most} clients of {name if summation.sends_predictions else repr(name)} at most, and no "
                f"sum of fewer than {settings.least} is made; let more take part, or lower {KEY}.least"
            )
    if summation.most >= 2**63:
        yield f"so many clients come to numbers beyond 64 bits; lower {KEY}.bits or {KEY}.most_examples"
