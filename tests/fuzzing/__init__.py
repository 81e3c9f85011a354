"""Damaged files for every reader: it reads them or refuses them in one sentence, soon and within bounds of memory.

``python -m tests.fuzzing`` runs all targets. A target is a module of this package with three functions:

``honest()``           a few cases that can be read: bytes, texts or values
``mutate(rng, case)``  one of them damaged, by a ``random.Random``; the case itself stays as it is
``read(case)``         raises nothing but a ``FedfuseError``
"""
