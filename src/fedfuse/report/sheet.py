"""Numbers beside names: no name and no number is ever cut, broken or left out, however narrow the terminal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import groupby

from rich.cells import cell_len
from rich.text import Text

Names = tuple[str, ...]
Numbers = tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """Rows of numbers, each with one name per key. Headings may have several lines.

    ``best`` are places of numbers, by row and column, that are shown in bold where that can be.
    """

    title: str
    keys: Names
    headings: Numbers
    rows: Sequence[tuple[Names, Numbers]]
    best: Collection[tuple[int, int]] = ()

    def lines(self, width: int) -> list[Text]:
        """One table if it is narrow enough; else names move, first all but the last, to lines of their own."""
        apart = dict.fromkeys((0, len(self.keys) - 1, len(self.keys)))
        layouts = [_Layout(self, count, " " * gap) for count in apart for gap in (3, 2)]
        layout = next((layout for layout in layouts if layout.width <= width), layouts[-1])
        return [Text(self.title, style="italic"), Text(), *layout.lines(), Text()]

    def text(self, width: int = 80) -> str:
        """The same without colours."""
        return "\n".join(line.plain for line in self.lines(width)).rstrip()

    def html(self) -> str:
        """The same for notebooks."""
        head = "".join(f"<th>{_cell(heading)}</th>" for heading in (*self.keys, *self.headings))
        rows = self._marked(_cell, "<b>{}</b>")
        body = "".join(f"<tr>{''.join(f'<td>{word}</td>' for word in row)}</tr>" for row in rows)
        return f"<table><caption>{_cell(self.title)}</caption><tr>{head}</tr>{body}</table>"

    def markdown(self) -> str:
        """The same for README files, without the title."""
        head = [_in_markdown(word) for word in (*self.keys, *self.headings)]
        lines = [" | ".join(row) for row in (head, *self._marked(_in_markdown, "**{}**"))]
        border = " | ".join(["---"] * len(self.keys) + ["---:"] * len(self.headings))
        return "\n".join(f"| {line} |" for line in (lines[0], border, *lines[1:]))

    def latex(self) -> str:
        """The same for papers, with the rules of the package booktabs; the title is a comment."""
        head = [in_latex(word) for word in (*self.keys, *self.headings)]
        rows = self._marked(in_latex, r"\textbf{{{}}}")
        lines = [f"  {' & '.join(row)} \\\\" for row in (head, *rows)]
        places = "l" * len(self.keys) + "r" * len(self.headings)
        title = " ".join(self.title.split()).replace("±", "+-")
        top = [f"% {title}; needs \\usepackage{{booktabs}}", f"\\begin{{tabular}}{{{places}}}", "  \\toprule", lines[0]]
        return "\n".join([*top, "  \\midrule", *lines[1:], "  \\bottomrule", "\\end{tabular}"])

    def _marked(self, write: Callable[[str], str], bold: str) -> Iterator[list[str]]:
        """Rows of words, with the best numbers in bold."""
        for place, (names, numbers) in enumerate(self.rows):
            marked = [
                bold.format(write(number)) if (place, column) in self.best else write(number)
                for column, number in enumerate(numbers)
            ]
            yield [*map(write, names), *marked]


def _cell(word: str) -> str:
    return escape(word).replace("\n", "<br>")


def _in_markdown(word: str) -> str:
    """Without what Markdown would take for its own, or for HTML."""
    word = "".join(f"\\{sign}" if sign in "\\|`*[]" else sign for sign in word)
    return word.replace("<", "&lt;").replace("\n", " ")


LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "…": r"\ldots{}",
    "\n": " ",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def in_latex(word: str) -> str:
    """Text that LaTeX prints as it is."""
    return "".join(LATEX.get(sign, sign if sign.isprintable() else " ") for sign in word)


@dataclass(frozen=True)
class _Layout:
    """A sheet with the first ``apart`` names of each row above the rows that share them."""

    sheet: Sheet
    apart: int
    gap: str

    @property
    def width(self) -> int:
        """Of the lines that have numbers."""
        return max(map(cell_len, self._header()))

    def lines(self) -> Iterator[Text]:
        yield from (Text(line, style="bold") for line in self._header())
        yield Text(" " + "─" * (self.width - 1))
        for shared, rows in groupby(self.sheet.rows, key=lambda row: row[0][: self.apart]):
            if shared:
                yield Text(f" {' '.join(shared)}", style="bold")
            yield from (Text(self._line((*names[self.apart :], *numbers))) for names, numbers in rows)

    def _header(self) -> list[str]:
        height = max(map(len, self._headings))
        aligned = [[""] * (height - len(lines)) + lines for lines in self._headings]
        return [self._line(words) for words in zip(*aligned, strict=True)]

    def _line(self, words: Sequence[str]) -> str:
        """Names to the left of their columns, numbers to the right."""
        names = len(self.sheet.keys) - self.apart
        blanks = [" " * (width - cell_len(word)) for word, width in zip(words, self._widths, strict=True)]
        padded = [
            word + blank if column < names else blank + word
            for column, (word, blank) in enumerate(zip(words, blanks, strict=True))
        ]
        return f" {'  ' if self.apart else ''}{self.gap.join(padded)}".rstrip()

    @cached_property
    def _headings(self) -> list[list[str]]:
        return [heading.split("\n") for heading in (*self.sheet.keys[self.apart :], *self.sheet.headings)]

    @cached_property
    def _widths(self) -> list[int]:
        rows = [(*names[self.apart :], *numbers) for names, numbers in self.sheet.rows]
        columns = zip(*rows, strict=True) if rows else [() for _ in self._headings]
        return [max(map(cell_len, (*heading, *words))) for heading, words in zip(self._headings, columns, strict=True)]
