"""What a node of this app does: play one client of experiment.yaml. A party changes load_data only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fedfuse.flower import client_app


def load_data(node_config: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """This party's examples: inputs as in the experiment's data, and whole numbers as labels.

    With data="/srv/ours.npz" in the node config, the arrays x and y of that file. Without it None, which stands for
    this client's share of the experiment's own data, to try things out.
    """
    if "data" not in node_config:
        return None
    with np.load(str(node_config["data"])) as file:
        return file["x"], file["y"]


app = client_app(Path(__file__).with_name("experiment.yaml"), load_data)
