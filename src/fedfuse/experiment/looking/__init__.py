"""Looking at runs that are there, finished or not: read from their folders, put side by side, shown. Nothing is run."""
