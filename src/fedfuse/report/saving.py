"""How a figure becomes a file: PNG, SVG or PDF by its ending, with bytes that depend on the picture only."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from fedfuse.core.errors import ConfigError
from fedfuse.core.files import write_bytes

ENDINGS = (".png", ".svg", ".pdf")
TEXT_IS_TEXT: dict[str, Any] = {"svg.fonttype": "none", "svg.hashsalt": "fedfuse", "pdf.fonttype": 42}
"""Words that can be searched, copied and edited; matplotlib takes these from its settings only."""
NO_DATE = {"Date": None, "Creator": None}
NO_DATE_OF_PDF = {"CreationDate": None, "Creator": None, "Producer": None}


def check_ending(path: Path) -> None:
    """Refuse what is no kind of picture."""
    if path.suffix.lower() not in ENDINGS:
        raise ConfigError(f"{path}: the name of a picture ends with {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")


def save(figure: Figure, path: Path) -> None:
    """Write a file without a date and without the version of the library; one without an ending is a PNG."""
    if path.suffix:
        check_ending(path)
    buffer = BytesIO()
    if path.suffix.lower() in ("", ".png"):
        FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})
    else:
        with mpl.rc_context(TEXT_IS_TEXT):
            if path.suffix.lower() == ".svg":
                FigureCanvasSVG(figure).print_svg(buffer, metadata=NO_DATE)
            else:
                FigureCanvasPdf(figure).print_pdf(buffer, metadata=NO_DATE_OF_PDF)
    write_bytes(path, buffer.getvalue())
