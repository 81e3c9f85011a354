"""The table of four tasks: tasks that do not share digits, rows in their order, and the page's place for it."""

from __future__ import annotations

import pytest
import torch
from benchmarks.merging.__main__ import NAME, PAGE, table
from benchmarks.merging.contenders import CONTENDERS, Measured, measured
from benchmarks.merging.tasks import VIEWS, Digits, Problem, problem
from benchmarks.page import put

from fedfuse.parts.merge import Fisher, Soup


@pytest.fixture(scope="module")
def small():
    return problem(seed=0, epochs=1)


def test_no_digit_is_in_two_parts(small):
    parts = [small.trained, small.tuning, small.test]
    rows = torch.cat([part.inputs.flatten(1) for part in parts])
    assert len(rows) == 1797 - 200
    assert len(rows.unique(dim=0)) > len(rows) - 5, "digits as they come, a few of which are drawn alike"


def test_views_are_four_different_tasks(small):
    seen = [small.test.seen(view).inputs for view in VIEWS]
    assert all(not torch.equal(one, other) for place, one in enumerate(seen) for other in seen[:place])
    assert torch.equal(small.test.mixed().inputs[: len(seen[0])], seen[0])


def test_the_average_of_copies_is_what_one_of_them_reaches(small, monkeypatch):
    """All models are the base, so every number is the mean of the base's accuracies over themselves."""
    monkeypatch.setattr("benchmarks.merging.contenders.CONTENDERS", {"average": ("own", {1.0: Soup(form="uniform")})})
    copies = Problem(small.base, (small.base,) * 4, small.trained, small.tuning, small.test)
    assert measured(copies, 0) == {"no merge: the base": Measured(1.0), "average": Measured(1.0)}


def test_public_inputs_are_the_same_for_all_and_own_ones_are_not(small, monkeypatch):
    asked = {}

    def combine(_self, trained):
        asked.setdefault(len(asked), [torch.cat(list(trained.batches(view, 8))) for view in VIEWS])
        return trained.mean()

    monkeypatch.setattr(Fisher, "combine", combine)
    chosen = {name: CONTENDERS[name] for name in ("Fisher, own inputs", "Fisher, public inputs")}
    monkeypatch.setattr("benchmarks.merging.contenders.CONTENDERS", chosen)
    measured(small, 0)
    own, public = asked.values()
    assert [len(inputs) for inputs in (*own, *public)] == [8] * 8
    assert all(torch.equal(inputs, public[0]) for inputs in public)
    assert not torch.equal(own[0], own[1])


def test_rows_are_sorted_and_say_how_far_seeds_differ():
    results = [
        {"average": Measured(0.5), "b": Measured(0.8, 0.7, 0.1)},
        {"average": Measured(0.6), "b": Measured(0.9, 0.7, 0.4)},
    ]
    _, _, first, second = table(results).splitlines()
    assert first == "| b | 85.0 ± 5.0 | +30.0 ± 0.0 | 0.1 to 0.4 | 70.0 ± 0.0 |"
    assert second == "| average | 55.0 ± 5.0 |  |  |  |"


def test_the_page_has_a_row_for_every_contender():
    page = PAGE.read_text(encoding="utf-8")
    assert put(page, NAME, "new").count("new") == page.count("new") + 1 - _old(page)
    assert all(f"\n| {name} | " in page for name in CONTENDERS)
    with pytest.raises(ValueError, match="no place"):
        put("", NAME, "new")


def _old(page):
    return page.partition("<!-- four tasks -->")[2].partition("<!-- end of four tasks -->")[0].count("new")


def test_digits_keep_their_labels():
    digits = Digits(torch.zeros(2, 8, 8), torch.tensor([3, 4]))
    assert digits.mixed().labels.tolist() == [3, 4] * 4
