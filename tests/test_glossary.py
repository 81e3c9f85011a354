"""Who searches for a word of the field finds the file where it lives."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fedfuse"
ROW = re.compile(r"^\| (?P<word>.+?) \| .+ \| `(?P<file>[\w/]+\.py)` \|$")
LINES = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
TABLE = [line for line in LINES if line.startswith("| ") and not line.startswith("| word ")]

WORDS = {
    "aggregation": "parts/merge/base.py",
    "aggregator": "parts/merge/__init__.py",
    "auxiliary data": "parts/sources/__init__.py",
    "backend": "engines/__init__.py",
    "client filtering": "parts/screen/base.py",
    "client sampling": "federation/sampling.py",
    "client_fn": "federation/client.py",
    "clipping": "parts/upload/__init__.py",
    "communication protocol": "parts/protocol/base.py",
    "compression": "parts/upload/__init__.py",
    "control variate": "parts/local/scaffold.py",
    "differential privacy": "parts/upload/__init__.py",
    "ensemble distillation": "parts/fuse/ensemble_distillation.py",
    "error feedback": "parts/local/one_bit.py",
    "initialisation": "parts/start/__init__.py",
    "knowledge distillation": "parts/fuse/__init__.py",
    "local objective": "parts/local/objective.py",
    "logits": "parts/protocol/predictions.py",
    "non-iid": "data/partition/base.py",
    "participation": "federation/sampling.py",
    "personalization": "parts/upload/__init__.py",
    "quantisation": "parts/upload/__init__.py",
    "robust aggregation": "parts/screen/base.py",
    "robust mean": "parts/scores/agreement.py",
    "server optimizer": "parts/merge/base.py",
    "sparsification": "parts/upload/__init__.py",
    "strategy": "federation/recipe.py",
    "student": "parts/fuse/base.py",
    "teacher weighting": "parts/scores/base.py",
}


def row(line):
    found = ROW.match(line)
    assert found, f"not a row of the glossary: {line}"
    return found


def test_every_file_of_the_glossary_exists():
    files = [row(line)["file"] for line in TABLE]
    assert files
    assert [file for file in files if not (SOURCE / file).exists()] == []


def test_the_glossary_is_alphabetical():
    first = [row(line)["word"].replace("*", "").lower().split(",")[0] for line in TABLE]
    plain = [re.sub(r"[_-]", " ", word) for word in first]
    assert plain == sorted(plain)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_of_the_field_is_in_the_glossary_and_in_its_file(word):
    assert word in "\n".join(LINES).lower()
    text = re.sub(r"\s+", " ", (SOURCE / WORDS[word]).read_text(encoding="utf-8").lower())
    assert word in text
