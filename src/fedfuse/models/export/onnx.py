"""ONNX, through the optional packages ``onnx``, ``onnxscript`` and ``onnxruntime``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from fedfuse.core.errors import MissingExtraError
from fedfuse.models.classifier import Classifier
from fedfuse.models.export.graph import INPUTS, LOGITS, PROBABILITIES, Answers, GraphFormat, RawGraph


class Onnx(GraphFormat):
    """The classes are in the file's metadata, as JSON."""

    title = "ONNX"

    def reads(self, model: Classifier) -> str:
        try:
            import onnxruntime  # noqa: F401
            import onnxscript  # noqa: F401
        except ImportError:
            raise MissingExtraError("export to ONNX", "export") from None
        return super().reads(model)

    def write_graph(self, graph: RawGraph, example: Tensor, about: dict[str, str], path: Path) -> None:
        program = torch.onnx.export(
            graph,
            (example,),
            dynamo=True,
            dynamic_shapes=({0: torch.export.Dim("batch")},),
            input_names=[INPUTS],
            output_names=[LOGITS, PROBABILITIES],
            verbose=False,
        )
        assert program is not None, "a program is what dynamo returns"
        program.model.metadata_props.update(about)
        program.save(path)

    def opened(self, path: Path) -> Callable[[Tensor], Answers]:
        import onnxruntime

        session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])

        def ask(inputs: Tensor) -> Answers:
            logits, probabilities = session.run([LOGITS, PROBABILITIES], {INPUTS: inputs.numpy()})
            return torch.from_numpy(logits), torch.from_numpy(probabilities)

        return ask
