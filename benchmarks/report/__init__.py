"""make bench-report: how long a page about many runs takes, and how large it is."""
