"""Why an experiment cannot keep its promise of privacy: found before round 1, in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from fedfuse.core.errors import ConfigError
from fedfuse.parts.accumulator import takes_one_by_one
from fedfuse.parts.base import MethodPart, speaks_for
from fedfuse.parts.merge.base import AveragingMerge
from fedfuse.parts.scores import Uniform
from fedfuse.parts.upload import Clip, Noise, Statistics, Upload
from fedfuse.privacy.claim import Claim

BY_CLIENTS = "method.upload: [{kind: clip, norm: 1.0}, {kind: noise, multiplier: 1.0}]"


def check_claim(claim: Claim) -> None:
    """Raise a ConfigError with the first reason why this cannot be promised."""
    for reason in _reasons(claim):
        raise ConfigError(f"privacy.unit is {claim.settings.unit}, but {reason}")


def _reasons(claim: Claim) -> Iterator[str]:
    yield from _about_the_payload(claim)
    yield from _about_training(claim)
    yield from _about_links(claim)
    yield from _about_extras(claim)
    yield from _about_counts(claim)
    yield from _about_shared_noise(claim)


def _about_the_payload(claim: Claim) -> Iterator[str]:
    """Clients' answers have noise, or are made of a model that has."""
    protocol = claim.recipe.protocol
    if protocol.carries == "nothing":
        return
    if claim.is_by_clients:
        if claim.multiplier == 0:
            yield (
                "method.upload noise has a deviation while the clip before it looks for its norm by itself, so that "
                "nobody knows what it is worth; give a multiplier"
            )
        return
    if claim.settings.unit == "client" and (protocol.carries == "layer" or claim.recipe.merge.changes_widths):
        yield (
            f"protocol {protocol.kind} with merge {claim.recipe.merge.kind} sends layers of widths that change, which "
            "no link can clip; protect examples (privacy.unit: example, with training.privacy), or use another merge"
        )
    if claim.settings.unit == "client":
        hint = " (training.privacy protects single examples alone)" if claim.training.privacy else ""
        yield f"what clients send has no noise that protects all of a client's data{hint}; set {BY_CLIENTS}"
    by_votes = claim.votes is not None and claim.votes.deviation is not None
    if by_votes:
        return
    if not claim.covers_models:
        yield (
            "nothing bounds what an example adds to what clients send; set training.privacy: {norm: 1.0, multiplier: "
            f"1.0}}, or {BY_CLIENTS}"
        )
    if protocol.payload_of == "examples" or not speaks_for(protocol, "payload_of", "answer"):
        yield f"method.protocol {protocol.kind} does not say that it sends nothing but what the trained model says"
    if claim.votes is not None and claim.votes.teachers > 1:
        yield (
            "the several teachers of method.protocol votes are trained beside training.privacy; give their votes a "
            "deviation, and leave training.privacy away"
        )


def _about_training(claim: Claim) -> Iterator[str]:
    """DP-SGD bounds what examples do through the gradient, and nothing else."""
    local, training = claim.recipe.local, claim.training
    if training.privacy is None:
        return
    if not local.separates_examples or not speaks_for(local, "separates_examples", "begin"):
        yield (
            f"method.local {local.kind} looks at examples elsewhere than in the gradient that training.privacy clips; "
            "use another objective, such as plain or proximal"
        )
    if training.stop_above is not None:
        yield "training.stop_above lets a client's loss decide how long it trains, which has no noise; remove it"
    if not training.shuffle:
        yield "training.shuffle is false, while every step of training.privacy draws its examples anew; remove it"
    for prototype in claim.bank.prototypes:
        network = claim.bank.network(prototype)
        if any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in network.modules()):
            yield (
                f"the BatchNorm of model '{prototype}' mixes the examples of a batch, so that none has a gradient of "
                "its own; give the model another norm, such as group"
            )
        elif claim.bank.layout(prototype).buffers:
            yield f"model '{prototype}' has statistics that travel without noise; give it layers without buffers"


def _about_links(claim: Claim) -> Iterator[str]:
    """Behind the noise, nothing reads the client's data again."""
    first = 0 if claim.noise_place is None or not claim.is_by_clients else claim.noise_place + 1
    for place, link in enumerate(claim.recipe.upload):
        if place < first and link.aside_spec():
            yield from _about_what_is_aside(place, link, claim)
        if place < first or isinstance(link, Clip | Noise | Statistics) or link.only_repacks:
            continue
        yield (
            f"method.upload[{place}] {link.kind} may read a client's data after the noise; put it before clip and "
            "noise, or let it say only_repacks = True if it does not"
        )


def _about_what_is_aside(place: int, link: Upload, claim: Claim) -> Iterator[str]:
    """What a link before the noise says is counted of the clip right before it, and of no other."""
    if link is not claim.clip:
        yield (
            f"method.upload[{place}] {link.kind} says something aside about an update that has no noise yet, which "
            "nobody counts; only the clip right before the noise may"
        )
    elif claim.clip.release is not None and claim.clip.release.multiplier == 0:
        yield (
            f"method.upload[{place}] {link.kind} says without noise whether an update is within its norm; give it a "
            "bit_deviation, such as 2.5"
        )


def _about_extras(claim: Claim) -> Iterator[str]:
    """What parts say beside the payload has noise, too."""
    for part in claim.speaking:
        if not claim.is_by_clients and claim.settings.unit == "example" and part.own_release() is not None:
            continue
        yield from _about_what_it_says(part, claim)
        yield from _about_what_travels_with_it(part, claim)


def _about_what_travels_with_it(part: MethodPart, claim: Claim) -> Iterator[str]:
    """Noise without a norm is measured by all extras together: one of which nobody knows leaves none of them any."""
    if claim.statistics is None or claim.statistics.norm is not None:
        return
    for other in claim.sending:
        if other is not part and other.sensitivity() is None:
            yield (
                f"{other.kind} sends something beside what {part.kind} does, and nobody knows how far one example "
                "moves it; give the link statistics of method.upload a norm"
            )


def _about_what_it_says(part: MethodPart, claim: Claim) -> Iterator[str]:
    slot = "local" if part is claim.recipe.local else "scores" if part is claim.recipe.scores else "protocol"
    what = f"method.{slot} {part.kind} sends something that is made of a client's examples beside the payload"
    if claim.statistics is None:
        norm = "norm: 1.0, " if claim.settings.unit == "client" or part.sensitivity() is None else ""
        yield f"{what}; add {{kind: statistics, {norm}multiplier: 1.0}} to method.upload, or choose another part"
    elif claim.statistics.norm is None and claim.settings.unit == "client":
        yield f"{what}, and one example is no measure of it; give the link statistics of method.upload a norm"
    elif claim.statistics.norm is None and part.sensitivity() is None:
        yield (
            f"{what}, and nobody knows how far one example moves it; give the link statistics of method.upload a norm"
        )


def _about_counts(claim: Claim) -> Iterator[str]:
    """How many examples a client has is its own business, where all that it has is."""
    recipe = claim.recipe
    if claim.settings.unit == "example":
        return
    counting: list[tuple[str, MethodPart]] = [("scores", recipe.scores), ("fuse", recipe.fuse)]
    if recipe.protocol.carries in ("weights", "layer"):
        counting.append(("merge", recipe.merge))
    for slot, part in counting:
        if part.counts_examples:
            yield (
                f"method.{slot} {part.kind} weighs clients by how many examples they have, which they would have to "
                f"tell; {_instead(slot)}"
            )


def _instead(slot: str) -> str:
    return {
        "merge": "set method.merge.weighting to uniform",
        "scores": "use scores uniform",
        "fuse": "set by_examples of its teachers to false",
    }[slot]


def _about_shared_noise(claim: Claim) -> Iterator[str]:
    """A share of the noise hides a client in a sum, and in nothing else that the server makes of its update."""
    noise, recipe = claim.noise, claim.recipe
    if noise is None or not noise.shared or not claim.is_by_clients:
        return
    way_out = "set shared of method.upload noise to false"
    if recipe.screen:
        yield f"method.screen {recipe.screen[0].kind} looks at single updates, whose noise is only a share; {way_out}"
    if recipe.protocol.carries == "predictions":
        if not isinstance(recipe.scores, Uniform) or getattr(recipe.fuse, "teachers_per_step", 1.0) < 1:
            yield f"some clients' predictions count without others', and each has only a share of the noise; {way_out}"
    elif recipe.fuse.reads != "nothing":
        yield (
            f"method.fuse {recipe.fuse.kind} asks single models, whose noise is only a share; {way_out}, or let "
            "predictions or votes travel"
        )
    elif not isinstance(recipe.merge, AveragingMerge) or not takes_one_by_one(recipe.merge, "merge", "average"):
        yield f"method.merge {recipe.merge.kind} looks at single updates, whose noise is only a share; {way_out}"
    elif recipe.merge.counts_examples:
        yield "shared noise is for sums in which all count the same; set method.merge.weighting to uniform"
