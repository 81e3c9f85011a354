"""Every defence against every attack: the tables of docs/robustness.md (``make attacks``)."""
