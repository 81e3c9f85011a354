"""The model of a round on a cluster: its terms by hand, its laws, and that every piece can be measured."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import pytest
from benchmarks.cluster.__main__ import FUSIONS, HERE, PAGE, WEIGHTS, checked, listed, predicted, spread
from benchmarks.cluster.measure import fitted, measure
from benchmarks.cluster.model import Cluster, Costs, Work, limit, seconds, terms
from benchmarks.cluster.workload import CannedEngine, Echo, built
from benchmarks.page import put

from fedfuse.core.messages import Task

COSTS = Costs(
    client=1, step=2, example=0.1, server_client=0.5, server_weight=0.01, merge_weight=0.001, teacher=1,
    teacher_input=0.2, distil_step=3, distil_input=0.1, evaluated_input=0.01, round=4, registered=0.001,
    moved={"ray": (0.25, 0.002)},
)  # fmt: skip
WORK = Work(registered=1000, clients=8, examples=20, batch=6, weights=100, evaluated=50)
FUSION = replace(WORK, inputs=30, steps=5, step_inputs=10)


def test_terms_by_hand():
    found = terms(COSTS, FUSION, Cluster("ray", 4, bandwidth=100))
    assert found == pytest.approx(
        {
            "clients": 8 * (1 + 4 * 2 + 20 * 0.1) / 4,
            "server's messages": 8 * (0.5 + 100 * 0.01 + 0.25 + 400 * 0.002),
            "network": 8 * 400 / 100,
            "merge": 8 * 100 * 0.001,
            "teachers": 8 * (1 + 30 * 0.2) / 4,
            "distillation": 5 * (3 + 10 * 0.1),
            "rest": 4 + 1 + 0.5,
        }
    )


def test_of_what_is_done_side_by_side_only_the_longest_counts():
    far = Cluster("ray", 10**6, bandwidth=1)
    assert seconds(COSTS, WORK, far) == pytest.approx(8 * 400 + 0.8 + 5.5)
    assert limit(COSTS, WORK, far) == "network"


def test_in_one_process_all_is_done_one_after_another():
    alone = seconds(COSTS, WORK, Cluster("process", 1))
    assert alone == pytest.approx(8 * (11 + 0.5 + 1) + 0.8 + 5.5)


def test_shared_cores_are_a_bound():
    two, shared = Cluster("ray", 2), Cluster("ray", 2, shared_cores=1)
    assert seconds(COSTS, WORK, shared) > seconds(COSTS, WORK, two)


def test_more_machines_help_until_something_else_is_the_limit():
    times = [seconds(COSTS, FUSION, Cluster("ray", number)) for number in (1, 2, 4, 8, 10**6, 10**7)]
    assert times == sorted(times, reverse=True)
    assert times[-1] == times[-2]
    assert limit(COSTS, WORK, Cluster("ray", 1)) == "clients"
    assert limit(COSTS, WORK, Cluster("ray", 10**6)) == "server's messages"


def test_costs_are_found_again_and_never_negative():
    rows = [((1, n, n * m), 3 + 0.5 * n + 0.01 * n * m) for n in (1, 5, 20) for m in (10, 100)]
    assert fitted(rows) == pytest.approx([3, 0.5, 0.01])
    assert min(fitted([((1, 1), 1.0), ((1, 2), 0.9), ((1, 3), 0.8)])) == 0


def test_tables_have_a_row_for_everything():
    check = list(checked(COSTS, {"fedavg, ray, 2": 10.0, "feddf, process, 1": 20.0}))
    assert len(check) == 4
    assert len(list(predicted(COSTS))) == 2 + 3 * len(FUSIONS)
    assert len(list(listed(COSTS))) == 2 + 13 + 2
    assert "| moved to a process of ray, to be merged there |" in list(spread(COSTS))[-1]


def test_the_page_has_a_place_for_every_table_and_keeps_the_rest():
    page = PAGE.read_text(encoding="utf-8")
    tables = {name: f"table of {name}" for name in ("costs", "check", "prediction", "merge")}
    filled = reduce(lambda text, name: put(text, name, tables[name]), tables, page)
    assert all(filled.count(table) == 1 for table in tables.values())
    assert reduce(lambda text, name: put(text, name, tables[name]), tables, filled) == filled
    assert filled.startswith(page[:200])


def test_every_piece_can_be_measured(tmp_path, monkeypatch):
    def once(action, times=1):
        action()
        return float(times)

    monkeypatch.setattr("benchmarks.cluster.measure.shortest", once)
    costs = measure(tmp_path, {"ray": (1.0, 2.0)})
    assert costs.moved == {"ray": (1.0, 2.0)}
    assert costs.merge_weight > 0


def test_the_workload_is_what_the_model_is_told(tmp_path):
    whole = built(tmp_path, "feddf")
    bank, source = whole.federation.bank, whole.source
    assert bank.layout("net").size == WEIGHTS
    work = replace(HERE, **FUSIONS["feddf"][0])
    assert len(source) == work.inputs
    assert whole.config.recipe.fuse.distiller.budget(len(source)) == work.steps
    assert len(whole.clients.datasets) == work.registered
    assert {len(whole.clients.datasets[client]) for client in range(work.registered)} == {work.examples}
    task = Task(1, 3, "net", whole.federation.start().server.weights["net"])
    canned = CannedEngine()
    (first,), (again,) = (list(canned.train([task], {})) for _ in range(2))
    assert first[0].weights is again[0].weights
    assert Echo().work(task, {})[0].client == 3
