"""Programs that measure fedfuse: its speed, its accuracy, and whether it still computes the same bits."""
