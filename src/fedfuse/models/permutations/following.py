"""A network's forward pass, followed operation by operation to see where each hidden unit goes.

The network runs once on a few examples, and every operation that torch carries out is looked at with the rule of its
kind (``operations.py``, ``rules.py``): whatever Python the network is written in, these are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode  # torch has no other door to what it carries out
from torch.utils._pytree import tree_leaves

from fedfuse.models.adapt import logits_of
from fedfuse.models.permutations import rules
from fedfuse.models.permutations.operations import CONSTANTS, MOVES, POINTWISE, Call
from fedfuse.models.permutations.rules import Fields, Operand, UnfollowedError
from fedfuse.models.permutations.ties import Ties, compact, varying


class Follower(TorchDispatchMode):
    """Fields of every tensor of one forward pass, and the ties that they give."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.ties = Ties()
        self.marks: dict[tuple[str, int], Tensor] = {}
        self.unfollowed: dict[str, str] = {}
        """Layers and tensors whose units no rule follows, with the reason."""
        self._unused: dict[int, str] = {}
        self._seen: dict[int, tuple[Tensor, Fields]] = {}
        self._layers = ["forward"]
        saved = network.state_dict()  # a buffer that is not in it is made anew by whoever loads the network
        for name, tensor in (*network.named_parameters(), *network.named_buffers()):
            if tensor.is_floating_point() and name in saved:
                self._unused[id(tensor)] = name
                self._seen[id(tensor)] = (tensor, tuple(self._axes(name, tensor)))

    def follow(self, network: nn.Module, example: Tensor) -> None:
        """The order of what comes in and of what goes out is nobody's to change."""
        self._seen[id(example)] = (example, ())
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), self._naming(network), self:
            answer = logits_of(network(example))
        for field in self._operand(answer).known:
            self.ties.hold(field)
        for name in self._unused.values():
            self.unfollowed[name] = "takes no part in its answers"
            for marks in (marks for (tensor, _), marks in self.marks.items() if tensor == name):
                self.ties.hold(marks)
        self._seen.clear()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here; to make sure of it, torch would load its compiler, which takes seconds."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        read = [tensor for tensor in tree_leaves((args, kwargs)) if isinstance(tensor, Tensor)]
        for tensor in read:
            self._unused.pop(id(tensor), None)
        operands = [self._operand(tensor) for tensor in read]
        name = func._schema.name.removeprefix("aten::").rstrip("_")
        if name in CONSTANTS or not any(operand.fields is not None for operand in operands):
            return result
        made = [tensor for tensor in tree_leaves(result) if isinstance(tensor, Tensor)]
        try:
            fields = self._fields(func, name, args, kwargs or {}, operands, made)
        except UnfollowedError:
            self._give_up(name, operands)
            fields = [()] * len(made)
        for tensor, own in zip(made, fields, strict=True):
            self._seen[id(tensor)] = (tensor, self._settled(own))
        return result

    def _fields(
        self, func: Any, name: str, args: Any, kwargs: Any, operands: list[Operand], made: list[Tensor]
    ) -> list[Fields]:
        """Those of everything that an operation makes."""
        if not any(operand.known for operand in operands):
            return [()] * len(made)
        if func._schema.is_mutable and operands[0].tensor._is_view() and len(operands) > 1:
            raise UnfollowedError  # what it is a view of changes as well
        if torch.Tag.pointwise in func.tags or name in POINTWISE:
            return [rules.number_by_number(self.ties, operands, made[0].ndim)] * len(made)
        if name in MOVES:
            return self._moved(func, name, args, kwargs, operands)
        if name in ("cat", "stack"):
            return [self._joined(func, name, args, kwargs)]
        named = {argument.name: argument.default_value for argument in func._schema.arguments}
        named |= dict(zip(named, args, strict=False)) | kwargs
        fields = Call(self.ties, named, self._operand, made[0]).fields(name)
        return [fields if tensor.ndim == made[0].ndim else () for tensor in made]

    def _moved(self, func: Any, name: str, args: Any, kwargs: Any, operands: list[Operand]) -> list[Fields]:
        """Numbers that only change places: their marks go the same way."""
        if any(operand.known for operand in operands[1:]):
            raise UnfollowedError  # an index that units decide about
        move: Callable[..., Any] = torch.reshape if "view" in name or "reshape" in name else func
        fields = operands[0].dense()
        if name == "as_strided":
            fields = [laid_out_like(operands[0].tensor, field) for field in fields]
        moved = [tree_leaves(move(field, *args[1:], **kwargs)) for field in fields]
        return [tuple(map(compact, fields)) for fields in zip(*moved, strict=True)]

    def _joined(self, func: Any, name: str, args: Any, kwargs: Any) -> Fields:
        """Tokens or pixels that are put beside others have the same units; channels have their own."""
        operands = [self._operand(tensor) for tensor in args[0] if tensor.shape != (0,)]  # which torch leaves out
        rank, axis = operands[0].tensor.ndim, dict(enumerate(args)).get(1, kwargs.get("dim", 0))
        if name == "cat" and not any(axis % rank in varying(field) for op in operands for field in op.known):
            return rules.number_by_number(self.ties, operands, rank)
        if any(len(operand.known) > 1 for operand in operands):
            raise UnfollowedError
        return (compact(func([(op.dense() or [op.blank()])[0] for op in operands], *args[1:], **kwargs)),)

    def _settled(self, fields: Fields) -> Fields:
        """Without those that mark a single unit: what is done with one of them alone singles it out."""
        for field in fields:
            if not varying(field):
                self.ties.hold(field)
        return tuple(field for field in fields if varying(field))

    def _give_up(self, name: str, operands: list[Operand]) -> None:
        self.unfollowed.setdefault(self._layers[-1], f"does with them what is not known ({name.strip('_')})")
        for operand in operands:
            for field in operand.known:
                self.ties.hold(field)

    def _operand(self, tensor: Tensor) -> Operand:
        seen = self._seen.get(id(tensor))
        return Operand(tensor, None if seen is None else seen[1])

    def _axes(self, name: str, tensor: Tensor) -> Iterator[Tensor]:
        for axis, size in enumerate(tensor.shape):
            if size > 1:
                marks = self.marks[name, axis] = self.ties.new(size)
                yield marks.reshape([-1 if other == axis else 1 for other in range(tensor.ndim)])

    @contextmanager
    def _naming(self, network: nn.Module) -> Iterator[None]:
        """So that an operation is known by the layer that asks for it."""
        hooks = []
        for name, layer in network.named_modules():
            if name:
                hooks.append(layer.register_forward_pre_hook(lambda *_, name=name: self._layers.append(name)))
                hooks.append(layer.register_forward_hook(lambda *_: self._layers.pop() and None))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def laid_out_like(tensor: Tensor, field: Tensor) -> Tensor:
    """The field with the tensor's own strides."""
    if tensor.storage_offset():
        raise UnfollowedError
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=field.dtype).copy_(field)
