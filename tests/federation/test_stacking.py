"""Which tasks are trained together; what comes of it is what comes of them alone, in any process, after a resume."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.engines.workers import WorkersEngine
from fedfuse.experiment.assembly import build
from fedfuse.federation import client as client_module
from fedfuse.federation.events import EventLog
from fedfuse.parts.local import Hooks, Plain
from fedfuse.testing.engine import LastFirst
from tests.helpers import played, tiny_config

STACKED = (
    "fedavg", "fedprox", "scaffold", "moon", "fedgkd", "fedgkd-vote", "fd", "feddistill-plus", "fedgen", "fedmd",
    "local-only", "fedavgm", "feddf",
)  # fmt: skip
"""Methods that cover every objective, protocols without weights, and distillation before the training."""


def built(method="fedavg", stack="auto", **sections):
    compute = {"device": "cpu", "stack": stack, **sections.pop("compute", {})}
    federation = {"rounds": 3, "participation": 1.0, **sections.pop("federation", {})}
    wanted = {"partition": {"kind": "dirichlet", "clients": 5, "alpha": 1.0, "min_examples": 2}, **sections}
    config = tiny_config(method, compute=compute, federation=federation, engine={"workers": 1}, **wanted)
    return build(config, EventLog())


def weights_of(snapshot):
    return torch.cat([weights.flat for weights in snapshot.server.weights.values()])


def everything_in(snapshot):
    kept = [t for _, state in sorted(snapshot.clients.items()) for _, t in sorted(state.items())]
    return [weights_of(snapshot), *kept]


@pytest.fixture
def stacked(monkeypatch):
    """How many clients were in each stack."""
    sizes = []

    def watched(clients, *others):
        sizes.append(len(clients))
        return train(clients, *others)

    train = client_module.train_stacked
    monkeypatch.setattr(client_module, "train_stacked", watched)
    return sizes


@pytest.mark.parametrize("method", STACKED)
def test_methods_come_to_the_same(method, stacked):
    plain, together = (played(built(method, stack).federation, 2) for stack in (False, "auto"))
    assert stacked
    for one, other in zip(everything_in(plain), everything_in(together), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    for one, other in zip(plain.server.history, together.server.history, strict=True):
        assert one.training_loss == pytest.approx(other.training_loss, rel=1e-4)
        assert (one.clients, one.bytes_up, one.bytes_down) == (other.clients, other.bytes_up, other.bytes_down)


class Noisy(Plain):
    """A stranger's objective, whose hooks draw from the generator that all would share."""

    def begin(self, client):  # noqa: ARG002
        return _Noise()


class _Noise(Hooks):
    def penalty(self, batch, features, logits):  # noqa: ARG002
        return 0.1 * (logits * torch.rand_like(logits)).mean()


class Quiet(Plain):
    stacks: ClassVar[bool] = True

    def begin(self, client):  # noqa: ARG002
        return Hooks()


NOT_STACKED = {
    "switched off": {"stack": False},
    "layers held still": {"method": "fedma"},
    "a further loss": {"method": "cronus"},
    "an objective that does not say so": {"method": {"name": "fedavg", "local": {"kind": f"{__name__}:Noisy"}}},
    "half precision": {"compute": {"precision": "bf16"}},
    "large steps": {"models": {"mlp": {"arch": "mlp", "hidden": [1000, 1000]}}, "training": {"batch_size": 8}},
    "one client a round": {"federation": {"clients_per_round": 1, "participation": 1.0}},
}


@pytest.mark.parametrize("case", NOT_STACKED)
def test_what_cannot_be_stacked_is_trained_one_by_one(case, stacked):
    played(built(**NOT_STACKED[case]).federation, 2)
    assert not stacked


def test_a_strangers_objective_that_says_so_is_stacked(stacked):
    played(built({"name": "fedavg", "local": {"kind": f"{__name__}:Quiet"}}).federation, 1)
    assert stacked


class TestBits:
    """No bit depends on how the tasks are divided."""

    def test_alone_in_a_stack(self):
        first, second = built("scaffold"), built("scaffold")
        snapshot = played(first.federation, 1)
        tasks = [Task(2, c, "mlp", snapshot.server.weights["mlp"], {"local/control": torch.full_like(
            snapshot.server.weights["mlp"].parameters, 0.01)}) for c in range(5)]  # fmt: skip
        for group in first.clients.groups(tasks):
            for update, state in first.clients.work_together(group, snapshot.clients):
                alone, kept = second.clients.work(tasks[update.client], snapshot.clients.get(update.client, {}))
                assert alone.weights.equals(update.weights)
                assert alone.metrics == update.metrics
                assert all(torch.equal(kept[name], state[name]) for name in state)

    @pytest.mark.parametrize("order", [LastFirst(), None])
    def test_the_order_of_tasks(self, order):
        expected = played(built("moon").federation, 2)
        other = built("moon")
        engine = order.open(other.clients, EventLog()) if order else other.federation.engine
        found = played(type(other.federation)(**{**vars(other.federation), "engine": engine}), 2)
        assert all(map(torch.equal, everything_in(found), everything_in(expected)))

    @pytest.mark.long
    def test_other_processes(self):
        expected = played(built("scaffold").federation, 2)
        other = built("scaffold")
        engine = WorkersEngine(other.clients, 2, None, EventLog())
        try:
            found = played(type(other.federation)(**{**vars(other.federation), "engine": engine}), 2)
        finally:
            engine.close()
        assert all(map(torch.equal, everything_in(found), everything_in(expected)))

    def test_another_process_that_goes_on(self):
        expected = played(built("scaffold").federation, 3)
        found = played(built("scaffold").federation, 2, played(built("scaffold").federation, 1))
        assert all(map(torch.equal, everything_in(found), everything_in(expected)))


class TestGroups:
    def tasks(self, clients, prototypes=("mlp",)):
        return [Task(1, c, prototypes[c % len(prototypes)], clients.bank.initial(prototypes[c % len(prototypes)],
                clients.key)) for c in range(len(clients.datasets))]  # fmt: skip

    def test_every_task_is_in_one_group_of_its_own_kind(self):
        models = {"one": {"arch": "mlp", "hidden": [4]}, "two": {"arch": "mlp", "hidden": [8]}}
        clients = built(models=models).clients
        tasks = self.tasks(clients, ("one", "two"))
        groups = clients.groups(tasks)
        assert sorted(task.client for group in groups for task in group) == [0, 1, 2, 3, 4]
        assert all(len({task.prototype for task in group}) == 1 for group in groups)
        assert all(len(group) <= clients._stacking.stack(group[0]).twin.size for group in groups)
        assert len(groups) < len(tasks)

    def test_clients_whose_rates_differ_are_apart(self):
        clients = built(training={"batch_size": 4, "schedule": "linear"}).clients
        for group in clients.groups(self.tasks(clients)):
            assert len({clients._stacking._steps(task) for task in group}) == 1

    def test_nothing_is_sorted_where_nothing_is_stacked(self):
        clients = built(stack=False).clients
        tasks = self.tasks(clients)[::-1]
        assert clients.groups(tasks) == [[task] for task in tasks]


def test_who_fails_names_itself():
    clients = built().clients
    tasks = TestGroups().tasks(clients)
    [group] = [group for group in clients.groups(tasks) if len(group) > 1][:1]
    number, whole = group[1].client, clients.datasets

    class Spoilt(dict):
        def __missing__(self, client):
            examples = whole[client]
            return type(examples)(examples.inputs, examples.labels + 99) if client == number else examples

    object.__setattr__(clients, "datasets", Spoilt())
    with pytest.raises(IndexError) as failure:
        clients.work_together(group, {})
    assert failure.value.__notes__ == [f"while client {number} trained 'mlp' in round 1"]
