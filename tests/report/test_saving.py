"""Pictures as files: the same bytes every time, and words as words."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.report.comparison import comparison_figure
from fedfuse.report.saving import ENDINGS, save

SEEDS = [[(1, 0.2), (2, 0.5)], [(1, 0.4), (2, 0.6)]]


def draw(path: Path) -> bytes:
    save(comparison_figure({"FedDF & <b>": SEEDS}, 0.5, "digits: test accuracy"), path)
    return path.read_bytes()


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_same_picture_has_the_same_bytes_and_no_date(tmp_path: Path, ending: str) -> None:
    before = dict(mpl.rcParams)
    first = draw(tmp_path / f"one{ending}")
    assert draw(tmp_path / f"two{ending}") == first
    assert dict(mpl.rcParams) == before
    assert not re.search(rb"CreationDate|<dc:date>|Matplotlib v|matplotlib\.org", first)


def test_an_svg_has_its_words_as_text_and_can_be_parsed(tmp_path: Path) -> None:
    root = ElementTree.fromstring(draw(tmp_path / "one.svg"))
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "digits: test accuracy" in words
    assert any(word and word.startswith("FedDF & <b>") for word in words)


def test_a_pdf_has_fonts_and_no_outlines(tmp_path: Path) -> None:
    content = draw(tmp_path / "one.pdf")
    assert content.startswith(b"%PDF")
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    streams = [zlib.decompress(part) for part in re.findall(rb"stream\n(.*?)\nendstream", content, re.DOTALL)[:1]]
    assert b"Tj" in streams[0] or b"TJ" in streams[0]


def test_another_ending_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"one\.jpg: the name of a picture ends with \.png, \.svg or \.pdf"):
        draw(tmp_path / "one.jpg")
    assert not list(tmp_path.iterdir())
