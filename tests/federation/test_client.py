"""A client's work is a pure function of its task, its state and the key."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedfuse.core.messages import Task
from fedfuse.core.randomness import Key
from fedfuse.federation.client import Clients
from fedfuse.models import Mlp
from fedfuse.parts.local import Hooks, Objective, Proximal
from fedfuse.runtime.training import TrainingSettings
from tests.helpers import AS_IT_IS, CPU, TinyNorm, make_bank, make_examples, make_recipe, make_source, make_weights


def make_clients(objective=None, **architectures):
    bank = make_bank(**(architectures or {"norm": TinyNorm(dropout=0.3), "mlp": Mlp(hidden=(5,))}))
    datasets = {client: make_examples(9 + client, seed=client) for client in range(3)}
    training = TrainingSettings(epochs=2, batch_size=4)
    recipe = make_recipe(local=objective) if objective else make_recipe()
    return Clients(datasets, AS_IT_IS, bank, recipe, None, None, training, 10, Key(1))


def task_of(clients, client=0, prototype="norm", number=1):
    return Task(number, client, prototype, make_weights(clients.bank, prototype, 5))


class TestPurity:
    def test_same_twice(self):
        clients = make_clients()
        task = task_of(clients)
        one, _ = clients.work(task, {})
        other, _ = clients.work(task, {})
        assert one.weights.equals(other.weights)
        assert one.metrics == other.metrics

    def test_independent_of_who_worked_before(self):
        clients, fresh = make_clients(), make_clients()
        for client, prototype in ((2, "norm"), (1, "mlp"), (0, "mlp")):
            clients.work(task_of(clients, client, prototype, number=7), {})
        torch.rand(11)
        assert clients.work(task_of(clients), {})[0].weights.equals(fresh.work(task_of(fresh), {})[0].weights)

    def test_depends_on_client_and_round(self):
        clients = make_clients(mlp=Mlp(hidden=(5,)))
        # The same examples for both, so that only the address of the randomness differs.
        same = Clients(
            {0: clients.datasets[0], 1: clients.datasets[0]},
            AS_IT_IS,
            clients.bank,
            make_recipe(),
            None,
            None,
            clients.training,
            10,
            Key(1),
        )
        results = [same.work(task_of(same, c, "mlp", r), {})[0].weights for c, r in ((0, 1), (1, 1), (0, 2))]
        assert len({weights.sha256() for weights in results}) == 3

    def test_the_task_is_left_as_it_was(self):
        clients = make_clients(Proximal(strength=0.1))
        task = task_of(clients)
        before = task.weights.sha256()
        update, _ = clients.work(task, {})
        assert task.weights.sha256() == before
        assert update.weights.sha256() != before

    def test_an_update_does_not_change_when_the_model_is_lent_again(self):
        clients = make_clients()
        update, _ = clients.work(task_of(clients), {})
        before = update.weights.sha256()
        clients.work(task_of(clients, 1), {})
        assert update.weights.sha256() == before

    def test_the_callers_generator_and_threads_come_back(self):
        clients = make_clients()
        threads = torch.get_num_threads()
        torch.set_num_threads(3)
        try:
            state = torch.random.get_rng_state()
            clients.work(task_of(clients), {})
            assert torch.get_num_threads() == 3
            assert torch.equal(torch.random.get_rng_state(), state)
        finally:
            torch.set_num_threads(threads)

    def test_the_callers_threads_do_not_matter(self):
        clients = make_clients()
        expected = clients.work(task_of(clients), {})[0].weights
        threads = torch.get_num_threads()
        torch.set_num_threads(2)
        try:
            assert clients.work(task_of(clients), {})[0].weights.equals(expected)
        finally:
            torch.set_num_threads(threads)
        assert CPU.threads == 1


class TestUpdate:
    def test_it_answers_its_task(self):
        clients = make_clients()
        update, state = clients.work(task_of(clients, 2, "mlp", 4), {})
        assert (update.round, update.client, update.prototype) == (4, 2, "mlp")
        assert update.examples == 11
        assert update.metrics["steps"] == 2 * 3
        assert update.extras == {}
        assert state == {}

    def test_hooks_see_the_state_and_fill_extras_and_state(self):
        class Counting(Objective):
            def begin(self, client):
                class Session(Hooks):
                    def extras(self):
                        return {"got": client.received["sent"] + 1}

                    def state(self):
                        return {"visits": client.state.get("visits", torch.tensor(0)) + 1}

                return Session()

        clients = make_clients(Counting())
        weights = make_weights(clients.bank, "mlp", 5)
        task = Task(1, 0, "mlp", weights, {"local/sent": torch.tensor(41)})
        update, state = clients.work(task, {"local/visits": torch.tensor(2)})
        assert int(update.extras["local/got"]) == 42
        assert int(state["local/visits"]) == 3


class Curious(Objective):
    """Looks at public inputs, and does not say that it needs them."""

    def begin(self, client):
        assert len(client.public) == 6
        return Hooks()


class TestPublicInputs:
    def test_a_part_that_did_not_say_that_it_needs_them_is_told_how(self):
        clients = make_clients(Curious())
        with pytest.raises(LookupError) as caught:
            clients.work(task_of(clients), {})
        assert str(caught.value) == (
            "a part asks for what this experiment does not have; needs_source = True says that it reads public inputs"
        )
        (note,) = caught.value.__notes__
        assert note == "while client 0 trained 'norm' in round 1"

    def test_where_they_are_it_reads_them(self):
        clients = replace(make_clients(Curious()), source=make_source(6))
        assert clients.work(task_of(clients), {})[0].weights


def test_an_error_says_which_client_round_and_prototype():
    class Broken(Objective):
        def begin(self, client):
            raise ZeroDivisionError(f"client {client.task.client}")

    clients = make_clients(Broken())
    threads = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError) as caught:
        clients.work(task_of(clients, 2, "mlp", 4), {})
    (note,) = caught.value.__notes__
    assert "client 2" in note
    assert "round 4" in note
    assert "'mlp'" in note
    assert torch.get_num_threads() == threads
