"""Networks as users write them."""

from __future__ import annotations

from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(2, width), nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.last(self.hidden(x).relu())
        return result

    class Inner(nn.Module):
        pass


class Demanding(Net):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.depth = depth


class Scaled(Net):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale


class Pair(Net):
    def forward(self, x: Tensor) -> tuple[Tensor, int]:  # type: ignore[override]
        return super().forward(x), 1


def net(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(input_shape[0], 6), nn.ReLU(), nn.Linear(6, classes))


def plain_net() -> nn.Module:
    return Net()


nameless = lambda: Net()  # noqa: E731
