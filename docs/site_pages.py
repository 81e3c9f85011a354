"""What the site needs beyond the pages in docs/: the texts of the repository's root, and the files that pages link to.

Pages are written for readers of the repository, with links relative to their file. On the site README.md is the first
page, and files outside docs/ that a page names are put below files/.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
TEXTS = {
    "README.md": "index.md",
    "examples/README.md": "examples.md",
    **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
}
LINK = re.compile(r"(\[[^\]]*\])\(([^)\s]+)\)")
FENCED = re.compile(r"(^ *```.*?^ *```$)", flags=re.MULTILINE | re.DOTALL)


def on_config(config: MkDocsConfig) -> None:
    """Headings have the anchors that they have on a code host."""
    config.mdx_configs["toc"]["slugify"] = anchor


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Adds the texts of the root and every file outside docs/ that some page links to."""
    for name, uri in TEXTS.items():
        files.append(File.generated(config, uri, content=(ROOT / name).read_text(encoding="utf-8")))
    linked = {_place(target, page) for page in files.documentation_pages() for target in _links(page)}
    for place in sorted(linked):
        if not place.startswith("docs/") and place not in TEXTS and (ROOT / place).is_file():
            files.append(File.generated(config, f"files/{place}", abs_src_path=str(ROOT / place)))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """The page with links as the site has them."""
    return "".join(
        part if part.lstrip().startswith("```") else LINK.sub(lambda link: _on_site(link, page.file), part)
        for part in FENCED.split(markdown)
    )


def anchor(title: str, separator: str) -> str:
    """Lower case, words joined by hyphens, punctuation left out."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", separator)


def _on_site(link: re.Match[str], page: File) -> str:
    words, target = link.groups()
    if re.match(r"\w+:|#", target):
        return link[0]
    file, hash_, heading = target.partition("#")
    place = _place(file, page)
    if (ROOT / place).is_dir():
        return f"`{place}`"
    there = TEXTS.get(place) or (place.removeprefix("docs/") if place.startswith("docs/") else f"files/{place}")
    return f"{words}({posixpath.relpath(there, posixpath.dirname(page.src_uri) or '.')}{hash_}{heading})"


def _links(page: File) -> list[str]:
    text = "".join(FENCED.split(page.content_string)[::2])
    return [target.partition("#")[0] for _, target in LINK.findall(text) if not re.match(r"\w+:|#", target)]


def _place(target: str, page: File) -> str:
    """Where a link of a page leads, from the repository's root."""
    source = next((name for name, uri in TEXTS.items() if uri == page.src_uri), f"docs/{page.src_uri}")
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
