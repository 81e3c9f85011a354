"""Experiments that the pages show can be read, in the keys of today."""

from __future__ import annotations

import re
import warnings

import pytest
import yaml

from fedfuse import Experiment
from tests.docs.blocks import ROOT, texts_of

BASE = {"data": {"name": "digits", "public": 0.2, "validation": 0.1}, "models": {"mlp": {"arch": "mlp"}}}
METHOD = re.compile(r"^(?=method:)", flags=re.MULTILINE)


def shown():
    """Each block of a page with a method in it; one that has several variants is several."""
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]:
        for place, block in enumerate(texts_of(str(page.relative_to(ROOT)), "yaml")):
            before, *methods = METHOD.split(block)
            for method in methods if "my_methods" not in block else ():  # the tutorial's own test runs these
                text = before + method if len(methods) == 1 else method
                yield pytest.param(text, id=f"{page.relative_to(ROOT)}-{place}")


@pytest.mark.parametrize("text", list(shown()))
def test_it_can_be_read_without_older_keys(text):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Experiment({**BASE, **yaml.safe_load(text)})
