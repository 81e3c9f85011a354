"""What the pages for parties show can be typed as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml
from PIL import Image

import fedfuse.flower
from fedfuse.cli.app import app
from fedfuse.experiment.config import checked
from fedfuse.flower.check import experiment_of, rehearse
from fedfuse.flower.failures import RAISED, SENTENCES
from fedfuse.flower.own_data import OwnFile
from fedfuse.flower.party import settings_of
from fedfuse.flower.project import new_project
from tests.docs.blocks import texts_of

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGES = (DOCS / "party.md", DOCS / "flower.md", Path(fedfuse.flower.__file__).parent / "template" / "README.md")
COMMAND = re.compile(r"^\$+ fedfuse flower (.*)$", flags=re.MULTILINE)


@pytest.mark.parametrize("line", sorted({line for page in PAGES for line in COMMAND.findall(page.read_text())}))
def test_commands_are_understood(line):
    name, *words = shlex.split(line, comments=True)
    flower = typer.main.get_command(app).get_command(None, "flower")
    assert flower.commands[name].make_context(name, words)


def block_of(page):
    """The one YAML file that a page shows."""
    [block] = texts_of(f"docs/{page}", "yaml")
    return block


def rehearsed(experiment, client, told):
    return rehearse(settings_of(experiment_of(experiment), {}, told), client, told)


def test_the_description_of_a_file():
    described = checked(OwnFile, yaml.safe_load(block_of("party.md")), "party.md")
    assert described.labels == {"B": "benign", "M": "malignant"}


def test_the_experiment_on_own_tables_and_a_party_with_other_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(number, number % 7, ("benign", "malignant")[number % 2]) for number in range(60)]
    Path("common.csv").write_text("age,size,finding\n" + "".join(f"{a},{s},{word}\n" for a, s, word in rows))
    visits = "".join(f"{word[0].upper()},w,{s},x{a},{a}\n" for a, s, word in rows[:20])
    Path("visits.csv").write_text(f"finding,ward,size,name,age\n{visits}")
    Path("ours.yaml").write_text(block_of("party.md"))
    Path("findings.yaml").write_text(block_of("flower.md"))
    new_project(Path("hospital-app"), "findings.yaml")
    found = rehearsed("hospital-app", 1, {"data": "ours.yaml", "prototype": "large"})
    assert found.counts == {"benign": 10, "malignant": 10}
    assert found.examples.inputs[3].tolist() == [3, 3]


def test_the_experiment_on_own_pictures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place in ("common/train", "common/test", "photos"):
        for number in range(12):
            folder = Path(place) / ("cat", "dog")[number % 2]
            folder.mkdir(parents=True, exist_ok=True)
            Image.new("L", (16, 16), 20 * number).save(folder / f"{number}.png")
    lines = block_of("flower.md").splitlines()
    [pictures] = [line.removeprefix("# ") for line in lines if line.startswith("# data:")]
    [network] = [line.partition(", ...")[0].partition("for pictures: ")[2] for line in lines if "for pictures" in line]
    text = [pictures if line.startswith("data:") else line for line in lines]
    text = [f"  small: {network}" if line.startswith("  small:") else line for line in text]
    Path("findings.yaml").write_text("\n".join(text))
    found = rehearsed("findings.yaml", 2, {"data": "photos", "prototype": "small"})
    assert found.counts == {"cat": 6, "dog": 6}


def test_the_sentences_of_a_node_that_cannot():
    page = (DOCS / "flower-records.md").read_text()
    for code, sentence in {2: RAISED, 101: SENTENCES[101], 102: SENTENCES[102], 103: SENTENCES[103]}.items():
        assert f"| {code} | {sentence} |" in page
