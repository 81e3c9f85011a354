"""The pages as a site: no warning, every page in its menu, nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

pytest.importorskip("material", reason="the site is built in the environment of make test")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    done = subprocess.run(
        build,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out


def test_every_page_is_on_it(site):
    pages = {str(page.relative_to(ROOT / "docs").with_suffix(".html")) for page in ROOT.glob("docs/**/*.md")}
    pages = {re.sub(r"README\.html$", "index.html", page) for page in pages}
    built = {str(page.relative_to(site)) for page in site.rglob("*.html")}
    assert pages | {"CHANGELOG.html", "CONTRIBUTING.html", "SECURITY.html"} <= built


def test_links_lead_to_files_and_headings(site):
    ids = {page: set(re.findall(r'\bid="([^"]+)"', page.read_text(encoding="utf-8"))) for page in site.rglob("*.html")}
    for page in ids:
        article = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
        for link in re.findall(r'href="([^"]+)"', article):
            if re.match(r"\w+:", link):
                continue
            file, _, heading = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            assert target.exists(), f"{page.name} links to {link}"
            assert not heading or heading in ids[target], f"{page.name} links to {link}"


def test_nothing_is_loaded_from_elsewhere(site):
    loaded = re.compile(
        r"""<(?:script|img|iframe)[^>]+src=["']?(https?:)?//|<link(?![^>]+rel="canonical")[^>]+href=["']?https?://"""
    )
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text(encoding="utf-8")), page
