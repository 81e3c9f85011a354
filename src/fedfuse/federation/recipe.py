"""A method as parts: its start, what travels, how clients train, who counts, how weights merge and predictions fuse."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from fedfuse.core.part import Settings
from fedfuse.parts.base import MethodPart
from fedfuse.parts.fuse import AnyFuse, NoFusion
from fedfuse.parts.local import AnyObjective, Plain
from fedfuse.parts.merge import AnyMerge, Mean
from fedfuse.parts.protocol import AnyProtocol, FullWeights
from fedfuse.parts.protocol.base import SLOT as PROTOCOL
from fedfuse.parts.scores import AnyScores, Asking, Uniform
from fedfuse.parts.scores.base import SLOT as SCORES
from fedfuse.parts.screen import AnyScreen
from fedfuse.parts.start import AnyStart, Fresh
from fedfuse.parts.upload import AnyUpload, Chain, Clip, Noise, Upload
from fedfuse.parts.upload.base import SLOT as UPLOAD

LOCAL, MERGE, FUSE = "local", "merge", "fuse"
__all__ = ["FUSE", "LOCAL", "MERGE", "PROTOCOL", "SCORES", "UPLOAD", "Recipe"]


class Recipe(Settings):
    """The parts of one method: the strategy. A combination of published methods is a recipe too, not new code.

    >>> recipe = fedfuse.Recipe(local={"kind": "proximal"}, upload=[{"kind": "half"}])
    >>> recipe.local.strength, recipe.merge.kind
    (0.01, 'mean')
    """

    start: AnyStart = Field(default_factory=Fresh, description="how the first weights come about")
    protocol: AnyProtocol = Field(default_factory=FullWeights, description="what travels between clients and server")
    upload: tuple[AnyUpload, ...] = Field((), description="what becomes of it on the way up, link after link")
    scores: AnyScores = Field(default_factory=Uniform, description="how much each teacher counts")
    local: AnyObjective = Field(default_factory=Plain, description="how a client trains")
    screen: tuple[AnyScreen, ...] = Field((), description="which updates count, screen after screen")
    merge: AnyMerge = Field(default_factory=Mean, description="weights to weights, inside each prototype")
    fuse: AnyFuse = Field(default_factory=NoFusion, description="predictions to weights, across prototypes")
    pooled: bool = Field(
        False, description="one party per model trains on everybody's examples: the centralised bound, no federation"
    )

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        protocol, fuse = self.protocol, self.fuse
        if fuse.reads == "weights" and protocol.carries != "weights":
            raise ValueError(f"fuse {fuse.kind} needs clients' weights, but protocol {protocol.kind} keeps them")
        if fuse.reads == "predictions" and protocol.carries != "predictions":
            raise ValueError(f"fuse {fuse.kind} reads predictions, but protocol {protocol.kind} sends none")
        if protocol.needs_student and fuse.reads == "nothing":
            raise ValueError(f"clients distil what the server's student says, but fuse {fuse.kind} trains none")
        if protocol.carries != "weights" and (self.screen or self.local.needs_weights):
            part = self.screen[0].kind if self.screen else self.local.kind
            raise ValueError(f"{part} needs weights that travel, but protocol {protocol.kind} keeps them at home")
        if self.merge.changes_widths:
            self._widths_may_change()
        elif protocol.carries == "layer":
            raise ValueError(f"protocol {protocol.kind} sends one layer at a time, which only merge matched can join")
        if self.merge.reorders_units:
            self._units_may_move()
        return self

    @model_validator(mode="after")
    def _scores_are_read(self) -> Self:
        scores, sent = self.scores, self.protocol.carries == "predictions"
        if self.fuse.reads != "weights" and not sent and not isinstance(scores, Uniform):
            raise ValueError(
                f"scores {scores.kind} say how much teachers count, but this method asks none; remove them"
            )
        if self.fuse.reads == "weights" and not scores.for_models:
            raise ValueError(
                f"scores {scores.kind} compare predictions that clients send; fuse {self.fuse.kind} has models"
            )
        if sent and not scores.for_predictions:
            raise ValueError(
                f"scores {scores.kind} judge clients' models, but protocol {self.protocol.kind} keeps them"
            )
        if scores.asks_clients and self.fuse.shows_new_inputs:
            raise ValueError("clients score the public inputs as they are; set fuse.views to fixed or student")
        return self

    @model_validator(mode="after")
    def _upload_has_something_to_pack(self) -> Self:
        for link in self.upload:
            if self.protocol.carries == "nothing" and link.needs_payload:
                raise ValueError(f"upload {link.kind} has nothing to pack: protocol {self.protocol.kind} sends nothing")
            if link.needs_whole_model and not self._sends_what_it_takes(link):
                raise ValueError(
                    f"upload {link.kind} works on whole models of fixed widths, which protocol {self.protocol.kind} "
                    f"with merge {self.merge.kind} does not send"
                )
            if link.needs_probabilities and not self.protocol.sends_probabilities:
                raise ValueError(
                    f"upload {link.kind} packs probabilities, but protocol {self.protocol.kind} sends none"
                )
        return self

    def _sends_what_it_takes(self, link: Upload) -> bool:
        """Whether the payload is whole models of fixed widths, or predictions for a link that takes these as well."""
        if self.protocol.carries == "predictions":
            return link.takes_predictions
        return self.protocol.carries == "weights" and not self.merge.changes_widths

    @model_validator(mode="after")
    def _noise_has_a_measure(self) -> Self:
        """A multiplier is of a bound that the link right before it keeps, or the protocol."""
        before: tuple[Upload | None, ...] = (None, *self.upload)
        for link, last in zip(self.upload, before, strict=False):
            if not isinstance(link, Noise) or link.multiplier is None or isinstance(last, Clip):
                continue
            if last is not None or not self.protocol.sends_probabilities:
                raise ValueError(
                    "upload noise has a multiplier of the clip norm, but no clip right before it; put one there, such "
                    "as {kind: clip, norm: 1.0}, or give a deviation"
                )
        return self

    def _widths_may_change(self) -> None:
        if self.protocol.carries not in ("weights", "layer"):
            raise ValueError(
                f"merge {self.merge.kind} changes the widths of layers, which protocol {self.protocol.kind} takes as "
                "fixed; use protocol weights"
            )
        if comparing := [screen.kind for screen in self.screen if screen.compares_weights]:
            raise ValueError(
                f"screen {comparing[0]} compares clients' weights number by number, but merge {self.merge.kind} gives "
                "clients networks of their own widths; use another merge, or leave the screen out"
            )
        if self.local.remembers_weights:
            raise ValueError(
                f"merge {self.merge.kind} changes the neurons of layers, but local {self.local.kind} remembers weights "
                "or features of the neurons before; use another merge or another local objective"
            )
        if self.fuse.compares_widths:
            raise ValueError(
                f"merge {self.merge.kind} changes the widths of layers, but fuse.teachers gaussian as_coded compares "
                "clients' weights with the server's; use form as_printed"
            )

    def _units_may_move(self) -> None:
        remembering = [f"local {self.local.kind}"] if self.local.remembers_weights else []
        remembering += [f"upload {link.kind}" for link in self.upload if link.remembers_weights]
        if remembering:
            raise ValueError(
                f"merge {self.merge.kind} may change the places of hidden units, but {remembering[0]} remembers "
                "weights or features of the units as they were; use another merge, or leave it out"
            )

    @property
    def has_server_model(self) -> bool:
        """Whether the server ends up with models of its own, and not only the clients."""
        return self.protocol.carries in ("weights", "layer") or self.fuse.reads != "nothing"

    @property
    def chain(self) -> Chain:
        """The links of the upload."""
        return Chain(self.upload)

    @property
    def asking(self) -> Asking:
        """How clients are asked for their scores."""
        return Asking(self.scores)

    @property
    def parts(self) -> tuple[MethodPart, ...]:
        return (
            self.start, self.protocol, *self.upload, self.scores, self.local, *self.screen, self.merge, self.fuse
        )  # fmt: skip

    @property
    def needs_source(self) -> bool:
        """Whether any part reads public inputs."""
        return any(part.needs_source for part in self.parts)

    @property
    def needs_labels(self) -> bool:
        """Whether any part reads their true labels."""
        return any(part.needs_labels for part in self.parts)
