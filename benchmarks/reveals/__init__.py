"""What left the parties, attacked (``attacked.py``), and what methods send (``methods.py``), for docs/."""
