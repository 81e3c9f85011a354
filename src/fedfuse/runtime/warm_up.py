"""What torch does once per process, done before a round's clock starts."""

from __future__ import annotations

from functools import cache

import torch
from torch import nn


@cache
def warm_up(device: torch.device) -> None:
    """One step of an optimiser, which makes torch import hundreds of modules and wakes the device: seconds that would
    count as round 1 of whichever run comes first in a process. It draws no random number.
    """
    parameter = nn.Parameter(torch.zeros(1, 1, device=device))
    optimizer = torch.optim.SGD([parameter])
    (parameter @ parameter).sum().backward()
    optimizer.step()
