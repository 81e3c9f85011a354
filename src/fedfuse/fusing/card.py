"""The card of a fused model: what it was made from, how, how good it is, and the command that makes it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import yaml

from fedfuse.core.files import write_text
from fedfuse.core.version import __version__
from fedfuse.fusing.members import About
from fedfuse.parts.voting import Choice
from fedfuse.report.sheet import Sheet

UNKNOWN = "unknown"


def card(
    name: str,
    members: Sequence[About],
    sections: Mapping[str, str | Sheet],
    command: str,
    is_transformers: bool,
    adapter_of: str | None = None,
) -> str:
    """The text of README.md, with the front matter that model hubs read."""
    front = {
        "license": _one_licence(members),
        "base_model": adapter_of or list(dict.fromkeys(about.base_model or about.origin for about in members)),
        "base_model_relation": "adapter" if adapter_of else "merge",
        "library_name": "peft" if adapter_of else "transformers" if is_transformers else "fedfuse",
        "tags": ["fedfuse", "model-fusion", "knowledge-distillation"],
    }
    matter = yaml.safe_dump({key: value for key, value in front.items() if value}, sort_keys=False, allow_unicode=True)
    parts = [f"---\n{matter}---", f"# {name}", f"Fused by fedfuse {__version__} from {len(members)} trained models."]
    for title, content in sections.items():
        parts.append(f"## {title}\n\n{content.markdown() if isinstance(content, Sheet) else content}")
    parts.append(f"## The command\n\n```\n{command}\n```")
    return "\n\n".join(parts) + "\n"


def write_card(
    made: Path,
    name: str,
    members: Sequence[About],
    sections: Mapping[str, str | Sheet],
    command: str,
    adapter_of: str | None,
) -> None:
    """Beside the model of this name that lies there already."""
    is_transformers = (made / "config.json").exists()
    write_text(made / "README.md", card(name, members, sections, command, is_transformers, adapter_of))


def members_sheet(members: Sequence[About]) -> Sheet:
    """What went in."""
    rows = [
        (tuple(map(plain, (m.name, m.origin, m.format, m.architecture))), (f"{m.parameters:,}", *_last(m)))
        for m in members
    ]
    return Sheet("models", ("model", "from", "format", "network"), ("parameters", "type", "licence", "sha256"), rows)


def plain(words: str) -> str:
    """What a file says, without the markup that it may hold."""
    return escape(words, quote=False)


def _last(about: About) -> tuple[str, ...]:
    return about.dtype, plain(about.licence or UNKNOWN), about.sha256


def choice_sheet(choice: Choice) -> Sheet:
    """All ensembles that were compared, the chosen one marked."""
    rows = []
    for row in choice.rows:
        measures = row.measures
        known = ("-", "-", "-")
        if measures is not None:
            known = (_percent(measures.accuracy), f"{measures.nll:.3f}", _percent(measures.calibration_error))
        rows.append(((f"{row.voting}{' (chosen)' if row.chosen else ''}",), (*known, _percent(row.agreement))))
    headings = ("accuracy\n%", "NLL", "calibration\nerror %", "agreement\n%")
    return Sheet("ensembles", ("ensemble",), headings, rows)


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"


def _one_licence(members: Sequence[About]) -> str | None:
    """That of all members, if all have the same; whoever mixes licences has to decide."""
    licences = {about.licence for about in members}
    return "other" if len(licences) > 1 else licences.pop()
