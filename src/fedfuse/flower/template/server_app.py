"""What the server of this app does: play the rounds of experiment.yaml on the connected nodes."""

from pathlib import Path

from fedfuse.flower import server_app

app = server_app(Path(__file__).with_name("experiment.yaml"))
