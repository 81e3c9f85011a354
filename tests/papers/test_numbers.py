from __future__ import annotations

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse_papers.numbers import Printed, is_same, matching, printed, rows


def test_a_printed_number_is_found_by_the_cell_s_labels() -> None:
    labels = {"dataset": "CIFAR-10", "alpha": "0.1", "method": "FedDF", "norm": "BN"}
    assert printed("feddf", {"table": "2"}, labels) == Printed(71.36, 1.07)
    assert printed("feddf", {"table": "2"}, {**labels, "our own axis": "anything"}) == Printed(71.36, 1.07)
    assert printed("feddf", {"table": "2"}, {**labels, "norm": "GN"}) is None


def test_an_unreadable_number_is_none_and_two_that_fit_are_a_mistake() -> None:
    assert printed("fedbe", {"table": "2"}, {"targets": "C + S", "model": "ConvNet"}) is None
    with pytest.raises(ConfigError, match="2 printed numbers of fedbe fit"):
        printed("fedbe", {"table": "2"}, {"targets": "FedAvg"})


def test_labels_and_values_are_compared_as_numbers_where_they_are() -> None:
    assert is_same(1, "1.0")
    assert is_same(0.1, "0.1")
    assert not is_same(0.1, "0.01")
    assert is_same("FedED-w2(CE)", "FedED-w2(CE)")
    assert not is_same("BN", "1")


def test_counts_of_the_papers_tables() -> None:
    counts = {number: len(matching("feddf", {"table": str(number)}, {})) for number in range(1, 9)}
    assert counts == {1: 55, 2: 20, 3: 25, 4: 9, 5: 8, 6: 8, 7: 6, 8: 8}
    assert len(rows()) == 824
