"""``python -m fedfuse``."""

from fedfuse.cli import main

main()
