"""What the repository's texts say of the repository: commands, links, version and citation."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

import fedfuse

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("papers/*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")]
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def prose(page):
    """A page without what is only quoted in it."""
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def links(page):
    """The files that a page links to, each with an anchor or an empty text."""
    inside = [link for link in LINK.findall(prose(page)) if not re.match(r"\w+:", link)]
    parts = [unquote(link).partition("#") for link in inside]
    return [((page.parent / file).resolve() if file else page, anchor) for file, _, anchor in parts]


def anchors(page):
    """GitHub's: lower case, words joined by hyphens, punctuation left out, repeated ones numbered."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    shown = [LINK.sub("", title) for title in re.findall(r"^#+ +(.*?)\s*$", text, flags=re.MULTILINE)]
    slugs = [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in shown]
    before = [Counter(slugs[:place])[slug] for place, slug in enumerate(slugs)]
    return {f"{slug}-{count}" if count else slug for slug, count in zip(slugs, before, strict=True)}


@every_page
def test_links_lead_somewhere(page):
    for file, anchor in links(page):
        assert file.is_relative_to(ROOT), f"{file} is outside"
        assert file.exists(), f"{file} does not exist"
        assert not anchor or anchor in anchors(file), f"{file.name} has no heading #{anchor}"


def test_every_page_can_be_reached_from_the_readme():
    reached, new = set(), {ROOT / "README.md"}
    while new:
        reached |= new
        new = {file for page in new for file, _ in links(page) if file.suffix == ".md"} - reached
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} <= reached


@every_page
def test_commands_of_make_exist(page):
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(re.findall(r"(?:`|\$ )make ([a-z][\w-]*)", page.read_text(encoding="utf-8"))) <= targets


def test_files_that_texts_name_exist():
    places = (ROOT, ROOT / "src", ROOT / "src" / "fedfuse")
    for text in [*PAGES, *ROOT.glob("src/**/*.py"), *ROOT.glob("papers/src/**/*.py")]:
        for name in re.findall(r"\b[\w/]+/\w+\.py\b", text.read_text(encoding="utf-8")):
            assert any((place / name).exists() for place in places), f"{text} names {name}"


def test_the_citation_names_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == fedfuse.__version__
    assert [paper["abbreviation"] for paper in citation["references"]] == ["FedDF", "FedBE", "FedED", "FedGKD"]


def test_the_papers_have_this_version_and_want_it():
    project = tomllib.loads((ROOT / "papers" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == fedfuse.__version__
    assert f"fedfuse=={fedfuse.__version__}" in project["dependencies"]


def test_the_changelog_names_this_version():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert fedfuse.__version__ in headings[0]


def test_hooks_fetch_nothing():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repository["repo"] for repository in hooks["repos"]] == ["local"]
    assert {hook["language"] for hook in hooks["repos"][0]["hooks"]} == {"system"}


def test_the_workflow_runs_what_everybody_can_run():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    assert [step["run"] for step in workflow["jobs"]["run"]["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").exists()
