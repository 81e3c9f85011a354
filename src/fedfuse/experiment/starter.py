"""A commented experiment file to start from, for data by name or of one's own, and for any method."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fedfuse.catalogue.card import Card
from fedfuse.catalogue.datasets import CATALOGUE
from fedfuse.catalogue.details import recipes
from fedfuse.catalogue.index import own_methods
from fedfuse.catalogue.method_names import check_name
from fedfuse.core.errors import ConfigError, unknown

TASKS = {"image": "digits", "table": "blobs"}
"""What is learnt if no data is named; both come with the package."""
FORMATS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".npz": "npz"}
LABELS = ("label", "class", "target", "y", "diagnosis", "outcome", "category")
"""What a column of labels may be called, likelier names first."""
CLIENTS = ("client", "client_id", "hospital", "site", "party", "user", "user_id", "writer", "center", "centre")
ROW_NUMBERS = re.compile(r"(?i:(.*[_ .-])?(id|idx|index|uuid)|unnamed: 0|)")
SNIFFED = 65_536
"""So many bytes of a table are looked at for the names of its columns."""
SEPARATORS = ",;\t|"
NOT_TEXT = ("true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf")
COLUMN = 28
"""Where comments begin, if there is room."""


@dataclass
class Given:
    """What a file is written for: lines of its section ``data``, and what follows from the data."""

    lines: list[tuple[str, str]]
    model: str
    clients: bool = False
    """Whether the data says whose each example is."""
    notes: list[str] = field(default_factory=list)


def starter(
    name: str = "experiment",
    data: str | Path | None = None,
    method: str = "feddf",
    task: str | None = None,
    label_column: str | None = None,
    client_column: str | None = None,
) -> str:
    """A commented experiment file: the example of a ``task``, a dataset by name, or a file or folder of your own.

    >>> print(fedfuse.starter(method="fedavg").splitlines()[-1])
    method: fedavg              # fedfuse methods lists them, fedfuse methods fedavg its keys
    """
    check_name(method)
    if data is not None and task is not None:
        raise ConfigError("--task chooses an example and --data names your own; give one of them")
    given = _given(str(data or TASKS.get(task or "image", "")), task, label_column, client_column)
    return "\n".join(_lines(name, given, method)) + "\n"


def _given(data: str, task: str | None, label: str | None, client: str | None) -> Given:
    if not data:
        raise ConfigError(unknown("task", str(task), TASKS))
    if data in CATALOGUE:
        return _by_name(data, CATALOGUE[data])
    path = Path(data).expanduser()
    if path.is_dir():
        own = [("name: images", "path/CLASS/*.png"), (f"path: {_text(data)}", ""), ("resize: 32", "all images alike")]
        return Given(own, "{arch: resnet8, norm: group}")
    kind = FORMATS.get(path.suffix.lower())
    if not path.is_file() or kind is None:
        known = [*CATALOGUE, "FILE.csv", "FILE.parquet", "FILE.npz", "a folder of images"]
        raise ConfigError(unknown("dataset or file", data, known))
    if kind == "npz":
        return Given([("name: npz", "arrays x and y"), (f"path: {_text(data)}", "")], "{arch: mlp, hidden: [64]}")
    return _table(data, path, kind, label, client)


def _by_name(name: str, card: Card) -> Given:
    lines = [(f"name: {name}", "fedfuse datasets lists others; your own: --data FILE")]
    if card.is_text:
        return Given(lines, "{arch: text_cnn}", bool(card.client_column))
    small = len(card.shape) < 3 or card.shape[-1] < 16
    model = "{arch: mlp, hidden: [64]}" if small else "{arch: cnn2}" if card.shape[0] == 1 else "{arch: resnet8}"
    return Given(lines, model, bool(card.client_column))


def _table(data: str, path: Path, kind: str, label: str | None, client: str | None) -> Given:
    columns = columns_of(path, kind)
    chosen = _column(columns, label, "--label-column") or _likely(columns, LABELS) or columns[-1]
    owner = _column(columns, client, "--client-column") or _likely([one for one in columns if one != chosen], CLIENTS)
    ignored = [one for one in columns if ROW_NUMBERS.fullmatch(one) and one not in (chosen, owner)]
    lines = [(f"name: {kind}", ""), (f"path: {_text(data)}", "")]
    lines.append((f"label_column: {_text(chosen)}", "" if label else "guessed; --label-column says another"))
    if owner:
        lines.append((f"client_column: {_text(owner)}", "" if client else "guessed; whose each row is"))
    if ignored:
        lines.append((f"ignore_columns: [{', '.join(map(_text, ignored))}]", "they seem to number the rows"))
    lines.append(("empty_cells: fill", "without it a row with an empty cell is refused"))
    rest = [one for one in columns if one not in (chosen, owner, *ignored)]
    return Given(lines, "{arch: mlp, hidden: [64]}", owner is not None, [f"inputs: {_shown(rest)}"])


def columns_of(path: Path, kind: str) -> list[str]:
    """The names of a table's columns."""
    if kind == "parquet":
        import pyarrow.parquet as pq

        try:
            return list(pq.read_schema(path).names)
        except Exception as error:
            raise ConfigError(f"{path} cannot be read as parquet: {error}") from None
    with path.open("rb") as file:
        start = file.read(SNIFFED).decode("utf-8-sig", errors="replace")
    first = next(iter(start.splitlines()), "")
    separator = max(SEPARATORS, key=first.count)
    columns = [one.strip() for one in next(csv.reader([first], delimiter=separator), [])]
    if len(columns) < 2:
        raise ConfigError(f"{path} has no two columns in its first line; a table has a header, a label and inputs")
    return columns


def _column(columns: Sequence[str], name: str | None, option: str) -> str | None:
    if name is not None and name not in columns:
        raise ConfigError(f"{option}: {unknown('column', name, columns)}")
    return name


def _likely(columns: Sequence[str], names: Sequence[str]) -> str | None:
    by_name = {column.lower(): column for column in columns}
    return next((by_name[name] for name in names if name in by_name), None)


def _lines(name: str, given: Given, method: str) -> Iterator[str]:
    recipe, row = recipes().get(method), own_methods().get(method)
    yield "# An experiment of fedfuse. Run it, change a key, compare methods, in this order:"
    yield f"#   fedfuse run {name}.yaml"
    yield f"#   fedfuse run {name}.yaml --set federation.rounds=20 --out runs/longer"
    other = "fedprox" if method == "fedavg" else "fedavg"
    yield f"#   fedfuse compare {name}.yaml --methods {other},{method} --seeds 0,1,2"
    yield "# fedfuse keys lists every key with its default, fedfuse help WORD explains a word."
    yield ""
    yield _line(f"name: {name}", "names the run folder")
    yield _line("seed: 0", "same seed, same bits")
    yield "data:"
    yield from (f"  # {note}" for note in given.notes)
    public = [("public: 0.2", "a share without labels, for the server to distil on")]
    shares = [("validation: 0.1", "a share of the training examples, for the server to validate on")]
    for line, comment in (*given.lines, *shares, *(public if row is None or row.public_inputs != "no" else [])):
        yield _line(f"  {line}", comment)
    yield _line("partition:", "who has which examples: fedfuse parts partition")
    if given.clients:
        yield _line("  kind: natural", "the clients that the data comes with")
    else:
        yield from ("  kind: dirichlet", "  clients: 10")
        yield _line("  alpha: 0.5", "the smaller, the fewer classes per client")
    yield _line("models:", "fedfuse models; several entries: clients of different architectures")
    head = ", projection_head: 32}" if recipe and recipe["local"].get("needs_projection_head") else "}"
    yield f"  net: {given.model.removesuffix('}')}{head}"
    yield _line("training:", "what a client does in a round")
    yield from ("  epochs: 2", "  batch_size: 32", "  optimizer: {kind: sgd, learning_rate: 0.1}")
    yield "federation:"
    yield "  rounds: 10"
    yield _line("  participation: 1.0", "share of the clients that is drawn for a round")
    yield from _method(method, recipe)


def _method(method: str, recipe: dict[str, dict[str, object]] | None) -> Iterator[str]:
    where = f"fedfuse methods lists them, fedfuse methods {method} its keys"
    distiller = recipe["fuse"].get("distiller") if recipe else None
    if not isinstance(distiller, dict) or distiller.get("steps") is None:
        yield _line(f"method: {method}", where)
        return
    yield _line("method:", where)
    yield f"  name: {method}"
    yield "  fuse:"
    yield _line("    distiller: {steps: 300, evaluate_every: 50}", f"quick; its own: {distiller['steps']} steps")


def _line(text: str, comment: str) -> str:
    return f"{text:<{COLUMN - 1}} # {comment}" if comment else text


def _text(value: str) -> str:
    """As YAML takes it: what could be taken for something else is in quotes."""
    if not value.isprintable():
        return json.dumps(value)
    is_plain = re.fullmatch(r"(\.{0,2}/)?[A-Za-z_][\w./-]*", value) and value.lower() not in NOT_TEXT
    return value if is_plain else "'" + value.replace("'", "''") + "'"


def _shown(names: Sequence[str]) -> str:
    few = ", ".join(repr(name)[1:-1] for name in names[:8])
    return f"{few} and {len(names) - 8} more" if len(names) > 8 else few
