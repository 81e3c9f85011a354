"""Elements of HTML and SVG as text; whatever is put into them is escaped, unless it is such an element itself."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from fedfuse.core.errors import shortened

LONGEST = 2000
"""Letters of a text, of which nothing on a page has as many unless somebody means harm."""


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Content = str | Html | Iterable["Content"]


def element(name: str, *content: Content, **attributes: str | float | bool | None) -> Html:
    """``class_`` is ``class``, other underscores are hyphens; True is an attribute without a value, None is none."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{said}>{joined(content)}</{name}>")


def empty(name: str, **attributes: str | float | bool | None) -> Html:
    """An element of SVG without content."""
    said = "".join(_attribute(key, value) for key, value in attributes.items())
    return Html(f"<{name}{said}/>")


def joined(content: Iterable[Content]) -> Html:
    return Html("".join(map(_text, content)))


def _text(content: Content) -> str:
    if isinstance(content, Html):
        return content
    return escape(plain(shortened(content, LONGEST))) if isinstance(content, str) else joined(content)


def plain(text: str) -> str:
    """Signs that no page should have, such as those that turn the direction of writing, are blanks."""
    return "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(plain(text))}"'
