"""A page of facts for a person, as the pages of this machine alone show them: headings, names, values, no script."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; } h1, h2 { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: .25rem 1rem; margin: 0; }
dt { opacity: .7; } dt, dd { overflow-wrap: anywhere; } dd { margin: 0; }
.bad { color: #c0392b; font-weight: 600; }
@media (max-width: 30rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .5rem; } }
"""
AGAIN = 10
"""Seconds after which a browser asks for the page anew."""


def facts_page(title: str, heading: str, body: str) -> str:
    """The whole page around a body of sections and paragraphs."""
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="{AGAIN}">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(heading)}</h1>{body}</body></html>"
    )


def section(heading: str, rows: Iterable[tuple[str, str]], bad: Collection[str] = ()) -> str:
    """Facts by name, those of which one should see at once that they are ``bad`` in red."""
    facts = "".join(
        f"<dt>{escape(name)}</dt><dd{' class=bad' if name in bad else ''}>{escape(value)}</dd>" for name, value in rows
    )
    return f"<h2>{escape(heading)}</h2><dl>{facts}</dl>"


def paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"
