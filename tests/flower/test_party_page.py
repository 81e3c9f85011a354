"""What the pages for parties show can be typed as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

import fedfuse.flower
from fedfuse.cli.app import app
from fedfuse.experiment.config import checked
from fedfuse.flower.failures import RAISED, SENTENCES
from fedfuse.flower.own_data import OwnFile

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = (DOCS / "party.md", DOCS / "flower.md", Path(fedfuse.flower.__file__).parent / "template" / "README.md")
COMMAND = re.compile(r"^\$+ fedfuse flower (.*)$", flags=re.MULTILINE)


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in COMMAND.findall(page.read_text())}))
def test_commands_are_understood(line):
    name, *words = shlex.split(line, comments=True)
    flower = typer.main.get_command(app).commands["flower"]
    assert flower.commands[name].make_context(name, words)


def test_the_description_of_a_file():
    [block] = re.findall(r"^```yaml\n(.*?)^```$", (DOCS / "party.md").read_text(), flags=re.MULTILINE | re.DOTALL)
    assert checked(OwnFile, yaml.safe_load(block), "party.md").labels == {"B": "benign", "M": "malignant"}


def test_the_sentences_of_a_node_that_cannot():
    page = (DOCS / "flower-records.md").read_text()
    for code, sentence in {2: RAISED, 101: SENTENCES[101], 102: SENTENCES[102]}.items():
        assert f"| {code} | {sentence} |" in page
