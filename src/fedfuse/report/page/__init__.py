"""Runs on one page of HTML that needs nothing else: tables and pictures are complete, and a script adds to them.

``render`` turns plain values (``data.py``) into the page. It is the same page whether it is a file or is shown while
runs go on: ``fedfuseReport.refresh(html)`` of the script takes over a newer one and keeps what the reader has chosen.
What goes on then stands above it (``now.py``), and ``live.js`` asks for news.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from fedfuse.core.version import __version__
from fedfuse.report.page.charts import marks
from fedfuse.report.page.data import PageData, Seed
from fedfuse.report.page.html import Html, element, joined
from fedfuse.report.page.sections import sections

__all__ = ["PageData", "policy", "render"]

MARK = f"fedfuse {__version__}"
MOST_POINTS = 1000
"""Of one run, that the script has; tables are made from all of them."""
DIGITS = 5
UNSCRIPTED = '<noscript><meta http-equiv="refresh" content="10"></noscript>'
"""Without a script, the browser asks for the whole page again."""


def render(data: PageData, now: Html | None = None) -> str:
    """The whole page; with ``now``, what goes on is on it, and a second script keeps both up to date."""
    parts = list(sections(data)) if data.rows or data.runs else []
    links = [element("li", element("a", heading, href=f"#{name}")) for name, heading, _ in parts]
    body = [
        element("section", element("h2", heading), *content, id=name, aria_label=heading)
        for name, heading, content in parts
    ]
    live = now is not None
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(live)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f'<meta name="generator" content="{MARK}">'
    )
    style = Html(f"<style>{_file('page.css')}</style>{UNSCRIPTED if live else ''}")
    scripts = ("page.js", "live.js") if live else ("page.js",)
    foot = "It is kept up to date while fedfuse runs." if live else "The page needs no network."
    page = [
        element("head", Html(head), element("title", f"{data.title}: fedfuse"), style),
        element(
            "body",
            marks(),
            element(
                "header",
                element("h1", data.title),
                element("p", data.subtitle),
                element("nav", element("ul", *links), aria_label="Sections"),
            ),
            *([now] if now is not None else []),
            element("main", *body),
            element("footer", element("p", f"Made by {MARK} from run folders. {foot}")),
            Html(f'<script type="application/json" id="fedfuse-data">{_for_script(data)}</script>'),
            *(Html(f"<script>{_file(name)}</script>") for name in scripts),
        ),
    ]
    return f'<!doctype html>\n<html lang="en">{joined(page)}</html>\n'


@cache
def policy(live: bool = False) -> str:
    """What a browser may do for this page: run our scripts, take our style, ask the sender for news; nothing else."""
    page, news, style = (f"'sha256-{_digest(_file(name))}'" for name in ("page.js", "live.js", "page.css"))
    script, connect = (f"{page} {news}", "; connect-src 'self'") if live else (page, "")
    return f"default-src 'none'; script-src {script}; style-src {style}{connect}; base-uri 'none'; form-action 'none'"


@cache
def _file(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _for_script(data: PageData) -> str:
    """What the script computes with, as JSON that cannot end its own element."""
    value = {
        "quantiles": list(data.quantiles),
        "rows": [{"label": row.label, "seeds": [_seed(seed) for seed in row.seeds]} for row in data.rows],
        "groups": [
            {"rows": list(group.rows), "axes": {axis.name: _axis(axis) for axis in group.axes}} for group in data.groups
        ],
    }
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _axis(axis: Any) -> dict[str, Any]:
    return {"unit": axis.unit, "factor": axis.factor, "digits": axis.digits}


def _seed(seed: Seed) -> dict[str, Any]:
    kept = _places(len(seed.rounds))
    spent = {name: [_short(values[place]) for place in kept] for name, values in seed.spent.items() if name != "rounds"}
    return {
        "seed": str(seed.seed),
        "rounds": [seed.rounds[place] for place in kept],
        "values": [round(seed.values[place], DIGITS) for place in kept],
        "spent": spent,
    }


def _places(count: int) -> Sequence[int]:
    if count <= MOST_POINTS:
        return range(count)
    return [round(place * (count - 1) / (MOST_POINTS - 1)) for place in range(MOST_POINTS)]


def _short(value: float) -> float:
    """Whole numbers without a point, others to a hundredth."""
    return int(value) if float(value).is_integer() else round(value, 2)
