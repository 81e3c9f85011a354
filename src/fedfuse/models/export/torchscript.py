"""TorchScript, for programs that have torch and no fedfuse, in Python or C++."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from fedfuse.models.export.graph import Answers, GraphFormat, RawGraph


class TorchScript(GraphFormat):
    """What the file says of itself are extra files in its archive."""

    title = "TorchScript"

    def write_graph(self, graph: RawGraph, example: Tensor, about: dict[str, str], path: Path) -> None:
        torch.jit.save(torch.jit.trace(graph, example, check_trace=False), path, _extra_files=about)

    def opened(self, path: Path) -> Callable[[Tensor], Answers]:
        loaded = torch.jit.load(path)

        def ask(inputs: Tensor) -> Answers:
            with torch.no_grad():
                answers: Answers = loaded(inputs)
            return answers

        return ask
