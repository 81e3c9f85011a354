"""What left the parties, attacked (``attacked.py``): the table of docs/audit.md."""
