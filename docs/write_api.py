"""Writes docs/api.md from the docstrings of what ``import fedfuse`` gives: ``make docs``.

Nothing on the page depends on the machine, so that a test can compare it with what is committed.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import fedfuse

PAGE = Path(__file__).parent / "api.md"

TITLES = {
    "fedfuse.experiment": "Experiments and their results",
    "fedfuse.parts": "Parts of a method",
    "fedfuse.federation": "Recipes and engines",
    "fedfuse.methods": "Recipes and engines",
    "fedfuse.engines": "Recipes and engines",
    "fedfuse.models": "Models",
    "fedfuse.data": "Data",
    "fedfuse.runtime": "Optimisers",
    "fedfuse.core": "Messages, weights, randomness, errors",
}
"""Chapters, in order, by where a name lives."""
OTHERS = "Others"

INTRODUCTION = """# API

What `import fedfuse` gives, and the bases of it. Written by `make docs` from the docstrings; examples are run by
`make test`. Everything else may change between versions. Parts are named in an experiment file by their `kind`, or by
their address if they are yours ([the experiment file](experiment-file.md#methods-and-combinations)); [the
glossary](glossary.md) has the field's words for them.
"""


def page() -> str:
    """The whole page."""
    chapters: dict[str, list[str]] = {title: [] for title in (*TITLES.values(), OTHERS)}
    public = {name: getattr(fedfuse, name) for name in fedfuse.__all__}
    classes = [value for value in public.values() if inspect.isclass(value)]
    bases = {base.__name__: base for value in classes for base in value.__mro__ if _is_ours(base)}
    for name, value in sorted((bases | public).items(), key=lambda item: item[0].lower()):
        if inspect.isclass(value) or inspect.isfunction(value):
            chapters[_chapter(value.__module__)].append(entry(name, value))
    written = [f"## {title}\n\n" + "\n".join(entries) for title, entries in chapters.items() if entries]
    return "\n".join([INTRODUCTION, *written])


def entry(name: str, value: Any) -> str:
    """One public name."""
    pieces = [f"### {name}\n", "" if name in fedfuse.__all__ else f"In `{value.__module__}`.\n"]
    if inspect.isclass(value):
        pieces += _class(name, value)
    else:
        pieces += [_code(_signature(name, value)), _prose(value)]
    return "\n".join(piece for piece in pieces if piece)


def _class(name: str, value: type) -> Iterator[str]:
    bases = [base.__name__ for base in value.__bases__ if _is_ours(base)]
    if bases:
        yield f"A `{'`, `'.join(bases)}`.\n"
    is_model = issubclass(value, BaseModel)
    if not is_model and not inspect.isabstract(value) and not issubclass(value, Exception):
        yield _code(_signature(name, value))
    yield _prose(value)
    if is_model:
        yield _fields(value)
    said = _said(value)
    own = _annotations(value)
    attributes = [(key, said[key]) for key in own if key in said and not _is_field(value, key)]
    yield _table(("attribute", "type", "meaning"), [(f"`{k}`", f"`{own[k]}`", text) for k, text in attributes])
    yield _table(("member", "meaning"), list(_methods(value)))


def _methods(value: type) -> Iterator[tuple[str, str]]:
    for name, member in vars(value).items():
        function = inspect.unwrap(getattr(member, "func", None) or getattr(member, "fget", None) or member)
        function = getattr(function, "__func__", function)
        if name.startswith("_") or name in _annotations(value) or not inspect.isfunction(function):
            continue
        is_property = not callable(member) and not isinstance(member, staticmethod | classmethod)
        shown = name if is_property else _signature(name, function, width=10_000)
        first = _tidy((inspect.getdoc(function) or "").partition("\n\n")[0])
        abstract = "**To be written.** " if getattr(function, "__isabstractmethod__", False) else ""
        yield f"`{shown}`", abstract + first


def _fields(value: type[BaseModel]) -> str:
    types = {key: text for base in reversed(value.__mro__) for key, text in _annotations(base).items()}
    rows = [
        (f"`{key}`", f"`{types.get(key, 'str')}`", _default(field), field.description or "")
        for key, field in value.model_fields.items()
    ]
    return _table(("field", "type", "default", "meaning"), rows)


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        made = field.default_factory()  # type: ignore[call-arg]
        return f"`{getattr(made, 'kind', made)}`"
    return "" if field.default is PydanticUndefined else f"`{field.default!r}`"


def _signature(name: str, value: Any, width: int = 110) -> str:
    """``name(arguments) -> result``, on several lines if it is long; without ``self``."""
    signature = inspect.signature(value)
    arguments = list(_arguments(signature))
    result = signature.return_annotation
    arrow = "" if inspect.isclass(value) or result is signature.empty else f" -> {result}"
    line = f"{name}({', '.join(arguments)}){arrow}"
    if len(line) <= width:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), f"){arrow}"])


def _arguments(signature: inspect.Signature) -> Iterator[str]:
    has_star = False
    for name, parameter in signature.parameters.items():
        if name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            yield "*"
        has_star = has_star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
        default = "" if parameter.default is parameter.empty else f" = {_plain(repr(parameter.default))}"
        yield f"{stars}{name}: {parameter.annotation}{default}"


def _plain(text: str) -> str:
    """Without addresses in memory, which differ from run to run; what is made anew for each is an ellipsis."""
    found = re.fullmatch(r"<(?:function )?([\w.]+)(?: object)?(?: at 0x[0-9a-f]+)?>", text)
    if found is None:
        return text
    return "..." if found[1] == "factory" else _last(found[1])


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _said(value: type) -> dict[str, str]:
    """The texts that stand below attributes in the source of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0].body  # type: ignore[attr-defined]
    said = {}
    for before, after in pairwise(body):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(after, ast.Expr):
            said[before.target.id] = _tidy(str(ast.literal_eval(after.value)))
    return said


def _annotations(value: type) -> dict[str, str]:
    return {key: str(text) for key, text in vars(value).get("__annotations__", {}).items()}


def _is_field(value: type, key: str) -> bool:
    return issubclass(value, BaseModel) and key in value.model_fields


def _prose(value: Any) -> str:
    """A docstring as Markdown; its examples become blocks of code."""
    text = inspect.cleandoc(value.__doc__ or "").replace("``", "`")
    if not text or text.startswith(f"{getattr(value, '__name__', '')}("):
        return ""  # what a dataclass says without a docstring
    example = re.compile(r"^>>> .*?(?=\n\n|\Z)", flags=re.MULTILINE | re.DOTALL)
    return example.sub(lambda found: f"```pycon\n{found[0]}\n```", text) + "\n"


def _tidy(text: str) -> str:
    return " ".join(text.replace("``", "`").replace("|", "\\|").split())


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    lines = [head, ("---",) * len(head), *(tuple(_cell(cell) for cell in row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def _is_ours(value: type) -> bool:
    return value.__module__.partition(".")[0] == "fedfuse"


def _chapter(module: str) -> str:
    return next((title for place, title in TITLES.items() if f"{module}.".startswith(f"{place}.")), OTHERS)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
