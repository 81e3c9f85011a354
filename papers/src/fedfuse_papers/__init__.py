"""The papers' tables and figures: as printed and as we measure them, side by side."""
