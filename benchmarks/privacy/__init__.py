"""What privacy costs in accuracy and bytes (``table.py``), and in time (``speed.py``): tables of docs/privacy.md."""
