"""ONNX: bytes, and graphs whose fields say something else."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime  # noqa: F401  what reads these

from tests.fuzzing.models_of_others import opened_and_asked
from tests.fuzzing.mutation import SIZES, bytes_of
from tests.fuzzing.place import written

KINDS = ("Relu", "Gemm", "Conv", "Softmax", "If", "Loop", "Evil", "", "Reshape", "ConstantOfShape")


def honest() -> list[bytes]:
    return [_graph(softmax) for softmax in (False, True)]


@cache
def _graph(softmax: bool) -> bytes:
    """Pixels, a matrix and perhaps a softmax."""
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    matrix = np.random.default_rng(0).standard_normal((192, 3)).astype(np.float32)
    last = "logits" if not softmax else "before"
    nodes = [
        helper.make_node("Flatten", ["pixels"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], [last]),
        *([helper.make_node("Softmax", ["before"], ["probabilities"])] if softmax else []),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("pixels", floats, ["batch", 3, 8, 8])],
        [helper.make_tensor_value_info("probabilities" if softmax else "logits", floats, ["batch", 3])],
        [onnx.numpy_helper.from_array(matrix, "matrix")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    content: bytes = model.SerializeToString()
    return content


def mutate(rng: Random, case: bytes) -> bytes:
    if rng.random() < 0.4:
        return bytes_of(rng, case)
    model = onnx.load_model_from_string(case)
    graph = model.graph
    match rng.randrange(9):
        case 0:
            rng.choice(graph.node).op_type = rng.choice(KINDS)
        case 1:
            node = rng.choice(graph.node)
            node.input[0] = rng.choice(("pixels", "flat", "nothing", "matrix", ""))
        case 2:
            place = rng.choice((graph.input[0], graph.output[0]))
            size = rng.choice(place.type.tensor_type.shape.dim)
            size.dim_value = rng.choice((0, 1, 2, 7, -1, *SIZES[:12]))
        case 3:
            place = rng.choice((graph.input[0], graph.output[0]))
            place.type.tensor_type.elem_type = rng.randrange(20)
        case 4:
            del graph.initializer[0].dims[:]
            graph.initializer[0].dims.extend(rng.choice(([3, 192], [10**6, 10**6], [-1, 3], [], [2**40])))
        case 5:
            _lies_elsewhere(rng, graph.initializer[0])
        case 6:
            model.metadata_props.add(key="inputs", value=rng.choice(("uint8 N x 3 x 8 x 8", "uint8 N x 9" * 9, "\0")))
            model.metadata_props.add(key="classes", value=rng.choice(('["a", "b", "c"]', "[" * 5000, "{}", "[1]")))
        case 7:
            model.opset_import[0].version = rng.choice((0, 1, 99, 2**31))
            model.opset_import[0].domain = rng.choice(("", "evil", "ai.onnx.ml"))
        case _:
            graph.node[0].domain = rng.choice(("com.evil", "ai.onnx.contrib"))
    content: bytes = model.SerializeToString()
    return content


def _lies_elsewhere(rng: Random, tensor: Any) -> None:
    """External data: beside the file at best, and never outside of its folder."""
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(
        key="location", value=rng.choice(("../../../../etc/passwd", "/etc/passwd", "beside.bin", "", "\0", "a/../../b"))
    )
    tensor.external_data.add(key="offset", value=rng.choice(("0", "-1", "9" * 30, "x")))


def read(case: bytes) -> None:
    opened_and_asked(written("model.onnx", case))
