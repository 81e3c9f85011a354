"""Folders of transformers: config, index, weights, preprocessor, tokenizer and card."""

from __future__ import annotations

from random import Random

import transformers  # noqa: F401  what reads these

from tests.fuzzing.models_of_others import Files, bert, damaged, folder_of, opened_and_asked, sharded, vit


def honest() -> list[Files]:
    return [vit(), bert(), sharded()]


def mutate(rng: Random, case: Files) -> Files:
    for _ in range(rng.choice((1, 1, 2))):
        case = damaged(rng, case)
    return case


def read(case: Files) -> None:
    opened_and_asked(folder_of(case))
