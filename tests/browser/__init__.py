"""Pages in a real browser: ``make test-browser``."""
