"""The rule of each operation of torch that computes something, by the name under which torch carries it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from fedfuse.models.permutations import rules
from fedfuse.models.permutations.rules import Fields, Operand, UnfollowedError
from fedfuse.models.permutations.ties import ANYONE, Ties, varying


def _names(*lines: str) -> frozenset[str]:
    return frozenset(name for line in lines for name in line.split())


CONSTANTS = _names(
    "empty zeros ones full arange scalar_tensor empty_like zeros_like ones_like full_like",
    "new_empty new_zeros new_ones new_full",
)
POINTWISE = _names("masked_fill copy clone detach alias lift_fresh _to_copy _prelu_kernel")
"""Those that torch does not mark as such."""
MOVES = _names(
    "view _unsafe_view reshape _reshape_alias as_strided permute transpose t unsqueeze squeeze expand repeat flip roll",
    "slice select narrow diagonal unfold index index_select split unsafe_split split_with_sizes unbind",
    "pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle",
)
SUMS = _names("sum mean max min amax amin prod logsumexp var std var_mean linalg_vector_norm")
POOLS = _names(
    "max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d",
    "avg_pool1d avg_pool2d avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d",
    "upsample_nearest1d upsample_nearest2d upsample_linear1d upsample_bilinear2d upsample_bicubic2d",
    "reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d",
)
BATCH_NORMS = _names(
    "native_batch_norm cudnn_batch_norm miopen_batch_norm _native_batch_norm_legit _batch_norm_no_update",
    "_native_batch_norm_legit_no_training _batch_norm_with_update",
)


class Call:
    """One operation with its arguments by name."""

    def __init__(
        self, ties: Ties, given: Mapping[str, Any], operand: Callable[[Tensor], Operand], made: Tensor
    ) -> None:
        self.ties, self.given, self._operand, self.made = ties, given, operand, made

    def of(self, name: str) -> Operand:
        return self._operand(self.given[name])

    def some(self, *names: str) -> list[Operand]:
        """The tensors of these names, of those that there are."""
        return [self.of(name) for name in names if self.given.get(name) is not None]

    def fields(self, name: str) -> Fields:
        """Those of what the operation makes."""
        given, ties = self.given, self.ties
        if name in ("mm", "bmm"):
            return self._product("self", "mat2")
        if name == "addmm":
            return self._with(self._product("mat1", "mat2"), [self.of("self")])
        if name == "baddbmm":
            return self._with(self._product("batch1", "batch2"), [self.of("self")])
        if name == "convolution":
            fields = rules.convolved(ties, self.of("input"), self.of("weight"), given["groups"], given["transposed"])
            return self._with(fields, self._by_channel("bias"))
        if name in BATCH_NORMS:
            fields = rules.by_channel(ties, self.of("input"))
            return self._with(fields, self._by_channel("weight", "bias", "running_mean", "running_var"))
        if name == "native_group_norm":
            fields = rules.normalised_in_groups(ties, self.of("input"), given["group"])
            return self._with(fields, self._by_channel("weight", "bias"))
        if name in ("native_layer_norm", "_fused_rms_norm"):
            axes = range(-len(given["normalized_shape"]), 0)
            return self._with(rules.symmetric(ties, self.of("input"), axes), self.some("weight", "bias"))
        if name in ("embedding", "_embedding_bag"):
            return rules.looked_up(ties, self.of("weight"), self.made.ndim)
        x = given.get("self", given.get("input"))
        if not isinstance(x, Tensor):
            raise UnfollowedError
        return self._of_one(name, self._operand(x))

    def _of_one(self, name: str, x: Operand) -> Fields:
        given, ties = self.given, self.ties
        if name in ("_softmax", "_log_softmax", "_safe_softmax"):
            return rules.symmetric(ties, x, [given["dim"]])
        if name in ("cumsum", "sort", "topk"):
            return rules.one_by_one(x, given["dim"])
        if name in SUMS:
            axes = given.get("dim")
            if name in ("max", "min") and axes is not None:
                rules.one_by_one(x, axes)  # it also says where the largest is
            return rules.reduced(ties, x, [axes] if isinstance(axes, int) else axes, given.get("keepdim", False))
        if name in POOLS:
            return rules.by_channel(ties, x)
        if name == "glu":
            return rules.halves(ties, x, given["dim"], self.made.ndim)
        if name == "constant_pad_nd":
            return _padded(x, given["pad"])
        raise UnfollowedError

    def _product(self, left: str, right: str) -> Fields:
        return rules.multiplied(self.ties, self.of(left), self.of(right))

    def _by_channel(self, *names: str) -> list[Operand]:
        return [vector.beside(1, self.made.ndim) for vector in self.some(*names)]

    def _with(self, fields: Fields, others: list[Operand]) -> Fields:
        """What was computed, added to or multiplied with others number by number."""
        return rules.number_by_number(self.ties, [Operand(self.made, fields), *others], self.made.ndim)


def _padded(x: Operand, pad: list[int]) -> Fields:
    """Constants around it."""
    if any(width < 0 for width in pad):
        raise UnfollowedError
    axes = [x.tensor.ndim - 1 - place // 2 for place in range(len(pad))]
    across = [[n if axis in varying(field) else 0 for axis, n in zip(axes, pad, strict=True)] for field in x.known]
    return tuple(nn.functional.pad(field, width, value=ANYONE) for field, width in zip(x.known, across, strict=True))
