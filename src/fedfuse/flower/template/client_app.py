"""What a node of this app does: play one client of experiment.yaml, on the examples that the node names (--data)."""

from pathlib import Path

from fedfuse.flower import client_app

app = client_app(Path(__file__).with_name("experiment.yaml"))
