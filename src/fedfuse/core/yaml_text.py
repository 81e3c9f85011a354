"""YAML of experiments: texts, numbers, truth values, lists and mappings, within bounds far from honest files."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import yaml

from fedfuse.core.errors import ConfigError, shortened

MOST_BYTES = 1_000_000
MOST_VALUES = 100_000
"""With aliases written out: ten lines of aliases of aliases can stand for billions."""
DEEPEST = 50
LONGEST_NUMBER = 100
TAG = "tag:yaml.org,2002:"
KINDS = ("null", "bool", "int", "float", "str", "seq", "map")
"""What JSON has, too; a date is text, and YAML's other kinds are refused."""


def load_yaml(text: str, where: str) -> Any:
    """The value that a text stands for, or one sentence about what is wrong with it."""
    check_length(len(text), where)
    try:
        return copy.deepcopy(_parsed(text))
    except yaml.YAMLError as error:
        raise ConfigError(f"{where} is not YAML: {_problem(error)}") from None
    except (ValueError, OverflowError):  # a character or version whose number is too high
        raise ConfigError(f"{where} is not YAML: a number in it is too high") from None


@lru_cache(maxsize=8)
def _parsed(text: str) -> Any:
    """A run that goes on reads its own file several times, which takes long."""
    return yaml.load(text, Loader=_Loader)


def read_yaml(path: Path) -> dict[str, Any]:
    """An experiment file as a raw mapping."""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        check_length(len(content), str(path))
        text = content.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a text file in UTF-8") from None
    raw = load_yaml(text, str(path))
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} should be a mapping of keys such as data, models and method")
    return raw


def dump_yaml(value: Any) -> str:
    """A text that :func:`load_yaml` reads as the same value."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """PyYAML writes Unicode's own line breaks as they are, and reads back a blank, unless the text is in quotes."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = '"' if any(sign in text for sign in "\x85\u2028\u2029") else None
    return dumper.represent_scalar(f"{TAG}str", text, style)


_Dumper.add_representer(str, _represent_text)


def check_length(length: int, where: str) -> None:
    """Before it is read: a megabyte takes seconds."""
    if length > MOST_BYTES:
        raise ConfigError(f"{where} is longer than a megabyte, which no experiment needs")


def _problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{shortened(str(error.problem))} in line {error.problem_mark.line + 1}"
    return shortened(" ".join(str(error).split()))


def _refuse(problem: str, at: Any) -> NoReturn:
    """``at`` is an event or a node, which know their lines."""
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=at.start_mark)


class _Loader(yaml.SafeLoader):
    """Counts while it reads, and refuses a key written twice, instead of silently keeping the last one."""

    yaml_implicit_resolvers = {  # noqa: RUF012  its own, for it knows no dates
        first: [(tag, pattern) for tag, pattern in pairs if tag != f"{TAG}timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._extents: dict[yaml.Node, tuple[int, int]] = {}
        """How many values a node stands for, and how deep they are nested."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > DEEPEST:
            _refuse(f"values are nested more than {DEEPEST} deep", event)
        node = super().compose_node(parent, index)
        if node is not None:
            values, height = self._extent(node, event)
            if values > MOST_VALUES:
                _refuse(f"there are more than {MOST_VALUES:,} values, with aliases written out", event)
            if self._depth + height > DEEPEST:
                _refuse(f"values are nested more than {DEEPEST} deep, with aliases written out", event)
        self._depth -= 1
        return node

    def _extent(self, node: yaml.Node, event: yaml.Event) -> tuple[int, int]:
        if node not in self._extents:
            if isinstance(event, yaml.AliasEvent):
                _refuse("an alias stands inside of what it names", event)
            pairs = node.value if isinstance(node, yaml.MappingNode) else ()
            parts = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in pairs for part in pair]
            extents = [self._extents.get(part, (1, 0)) for part in parts]
            height = 1 + max((height for _, height in extents), default=0) if parts else 0
            self._extents[node] = 1 + sum(values for values, _ in extents), height
        return self._extents[node]

    def compose_mapping_node(self, anchor: dict[Any, yaml.Node]) -> yaml.MappingNode:
        """Keys are texts, whatever else they look like, but for the merge key."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for place, (key, value) in enumerate(node.value):
            if not isinstance(key, yaml.ScalarNode):
                _refuse("a key is a list or a mapping, but should be text", key)
            if key.value in seen:
                _refuse(f"the key '{shortened(key.value)}' is written twice", key)
            seen.add(key.value)
            if key.tag != f"{TAG}merge":
                node.value[place] = yaml.ScalarNode(f"{TAG}str", key.value, key.start_mark, key.end_mark), value
        return node

    def compose_scalar_node(self, anchor: dict[Any, yaml.Node]) -> yaml.ScalarNode:
        """A character outside of the first plane may come as a pair, as JSON writes it; half of a pair is none."""
        node = super().compose_scalar_node(anchor)
        try:
            node.value = node.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            _refuse("a text holds half of a character", node)
        return node

    def construct_undefined(self, node: yaml.Node) -> NoReturn:
        _refuse(f"an experiment holds nothing of the kind '{shortened(node.tag.replace(TAG, '!!'))}'", node)


def _number(construct: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def checked(loader: _Loader, node: yaml.ScalarNode) -> Any:
        if len(node.value) > LONGEST_NUMBER:
            _refuse(f"a number is longer than {LONGEST_NUMBER} digits", node)
        try:
            return construct(loader, node)
        except (ValueError, LookupError, OverflowError, AttributeError):  # by its tag only, such as !!int many
            _refuse(f"'{node.value}' is no {node.tag.removeprefix(TAG)}", node)

    return checked


_Loader.yaml_constructors = {f"{TAG}{kind}": yaml.SafeLoader.yaml_constructors[f"{TAG}{kind}"] for kind in KINDS}
_Loader.yaml_constructors |= {
    f"{TAG}{kind}": _number(yaml.SafeLoader.yaml_constructors[f"{TAG}{kind}"]) for kind in ("bool", "int", "float")
}
_Loader.yaml_constructors[None] = _Loader.construct_undefined
