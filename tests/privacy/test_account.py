"""The books of a run: what really happened is what is counted."""

from __future__ import annotations

import math
from dataclasses import replace

import dp_accounting
import pytest
import torch
from dp_accounting import pld

from fedfuse.core.randomness import Key
from fedfuse.core.releases import Release
from fedfuse.experiment.assembly import build
from fedfuse.federation.accounting import Attended
from fedfuse.federation.events import EventLog
from fedfuse.parts.upload import Clip, Statistics
from fedfuse.privacy.accountants import epsilon_of
from fedfuse.privacy.books import Books
from fedfuse.privacy.planning import Plan, least_noise, planned_visits, rounded_up
from fedfuse.runtime.training import ExamplePrivacy
from tests.helpers import tiny_config, tiny_method

UNIFORM = {"kind": "mean", "weighting": "uniform"}
CLIP, NOISE = {"kind": "clip", "norm": 1.0}, {"kind": "noise", "multiplier": 2.0}
TAKEN = {"rounds": 2, "participation": 0.75, "claims": "taken", "moves": "taken"}
DP_SGD = {"epochs": 2, "batch_size": 8, "privacy": {"norm": 1.0, "multiplier": 1.2}}


def account_of(upload=(CLIP, NOISE), privacy=None, method="fedavg", merge=True, parts=None, **sections):
    parts = {"upload": list(upload), **({"merge": UNIFORM} if merge else {}), **(parts or {})}
    config = tiny_config(tiny_method(method, **parts), privacy={"unit": "client", **(privacy or {})}, **sections)
    built = build(config, EventLog())
    built.federation.engine.close()
    return built.federation.accounting


def attended(*clients, number=1, **more):
    return [Attended(number, client, more.pop("prototype", "mlp"), False) for client in clients]


def epsilon(*releases):
    return epsilon_of(releases, 1e-5, "rdp")


class TestWhoIsCounted:
    def test_those_who_took_part_as_often_as_they_did(self):
        account = account_of()
        books = account.after({}, attended(0, 1))
        books = account.after(books, attended(1, 3, number=2))
        each = account.report(books)["against"]["everybody"]["clients"]
        assert each == {
            "0": pytest.approx(epsilon(Release(2.0))),
            "1": pytest.approx(epsilon(Release(2.0, 1.0, 2))),
            "3": pytest.approx(epsilon(Release(2.0))),
        }
        assert account.record(books).client == 1

    def test_the_books_come_back_from_a_checkpoint(self):
        account, other = account_of(), account_of()
        books = account.after(account.after({}, attended(0, 1)), attended(0, number=2))
        again = {name: rows.clone() for name, rows in books.items()}
        assert other.report(again) == account.report(books)

    def test_books_are_continued_and_not_changed(self):
        account = account_of()
        first = account.after({}, attended(0))
        told = account.report(first)
        account.after(first, attended(0, 1, number=2))
        assert account.report(first) == told

    def test_of_examples_the_size_counts_that_the_client_said(self):
        account = account_of((), {"unit": "example"}, training=DP_SGD)
        one = [Attended(1, 0, "mlp", False, examples=40), Attended(1, 1, "mlp", False, examples=80)]
        each = account.report(account.after({}, one))["against"]["everybody"]["clients"]
        assert each["0"] == pytest.approx(epsilon(Release(1.2, 8 / 40, 2 * 5)))
        assert each["1"] == pytest.approx(epsilon(Release(1.2, 8 / 80, 2 * 10)))

    def test_epochs_that_are_drawn_are_those_that_count(self):
        training = {**DP_SGD, "epochs": 4, "fewest_epochs": 1, "epochs_drawn": "every_round"}
        account = account_of((), {"unit": "example"}, training=training)
        books, steps = {}, 0
        for number in range(1, 6):
            books = account.after(books, [Attended(number, 2, "mlp", False, examples=40)])
            drawn = Key(0).child("round", number, "client", 2, "epochs").numpy().integers(1, 5)
            steps += 5 * int(drawn)
        assert 5 * 5 < steps < 5 * 20
        told = account.report(books)["epsilon"]
        assert told == pytest.approx(epsilon(Release(1.2, 8 / 40, steps)))

    def test_a_look_for_the_norm_is_counted_too(self):
        account = account_of(({**CLIP, "quantile": 0.5, "bit_deviation": 1.5}, NOISE))
        told = account.report(account.after({}, attended(0)))["epsilon"]
        assert told == pytest.approx(epsilon(Release(2.0), Release(3.0)))

    def test_what_is_said_once_is_counted_once(self):
        statistics = {"kind": "statistics", "multiplier": 4.0}
        account = account_of((statistics,), {"unit": "example"}, "feded-w1", merge=False, training=DP_SGD)
        first, later = (
            [Attended(number, 0, "mlp", is_asked=asked, examples=40)] for number, asked in ((1, True), (2, False))
        )
        books = account.after(account.after({}, first), later)
        assert account.report(books)["epsilon"] == pytest.approx(epsilon(Release(1.2, 0.2, 20), Release(4.0)))


class TestOneExampleInWhatIsCutAsAWhole:
    """It may turn an update round, which a client that is left out cannot: twice as far, so half of the multiplier."""

    @staticmethod
    def exactly(deviation, distance):
        event = dp_accounting.GaussianDpEvent(deviation / distance)
        return pld.PLDAccountant().compose(event).get_epsilon(1e-5)

    @staticmethod
    def told(upload, unit, method="fedavg", merge=True, **sections):
        account = account_of(upload, {"unit": unit, "accountant": "prv"}, method, merge, **sections)
        return account.report(account.after({}, attended(0)))["epsilon"]

    @pytest.mark.parametrize("unit", ["client", "example"])
    def test_an_update(self, unit):
        """Cut to 1, an update of 3 and what one more example makes of it, or the nothing of a client that is blank."""
        update = torch.tensor([3.0, 0.0])
        cut, neighbour = (
            Clip(norm=1.0).changed(u, None) for u in (update, -update if unit == "example" else 0 * update)
        )
        exact = self.exactly(2.0, float((cut - neighbour).norm()))
        assert exact <= self.told((CLIP, NOISE), unit) <= exact + 0.02

    @pytest.mark.parametrize("unit", ["client", "example"])
    def test_a_table_of_votes(self, unit):
        """On every input the vote goes from one class to another, or to none."""
        protocol, scores = {"kind": "votes", "inputs": 6}, "uniform"
        account = account_of(
            (NOISE,), {"unit": unit, "accountant": "prv"}, "feded-w0", False, {"protocol": protocol, "scores": scores}
        )
        table = torch.eye(3)[[0, 1, 2, 0, 1, 2]]
        neighbour = table.roll(1, dims=1) if unit == "example" else torch.zeros_like(table)
        exact = self.exactly(2.0 * math.sqrt(6), float((table - neighbour).norm()))
        told = account.report(account.after({}, attended(0)))["epsilon"]
        assert exact <= told <= exact + 0.02

    def test_what_is_said_of_its_length(self):
        looking = {**CLIP, "quantile": 0.5, "bit_deviation": 1.5}
        account = account_of((looking, NOISE), {"unit": "example"})
        told = account.report(account.after({}, attended(0)))["epsilon"]
        assert told == pytest.approx(epsilon(Release(1.0), Release(1.5)))

    @pytest.mark.parametrize(("sensitivity", "counted"), [(None, 2.0), (100.0, 2.0), (4.0, 5.0)])
    def test_statistics_with_a_norm(self, sensitivity, counted):
        """Deviation 20 about a norm of 5: 10 at most lie between the ends."""
        link = Statistics(norm=5.0, multiplier=4.0)
        assert link.counted(sensitivity, by_example=True) == pytest.approx(counted)
        assert link.counted(sensitivity, by_example=False) == 4.0

    def test_rounding_counts_over_what_can_move(self):
        shared = (CLIP, {**NOISE, "shared": True})
        sums = {**TAKEN, "secure_sums": {"range": 100.0, "least": 3}}
        claims = [account_of(shared, {"unit": unit}, federation=sums).claim for unit in ("client", "example")]
        lost = [1 / claim.rounding - 1 for claim in claims]
        assert 0 < lost[0] == pytest.approx(2 * lost[1])


class TestSharedNoise:
    LINKS = (CLIP, {**NOISE, "shared": True})

    def test_less_noise_than_planned_is_what_is_counted(self):
        account = account_of(self.LINKS, federation=TAKEN)
        everybody = attended(0, 1, 2, 3)
        missing = [*attended(0, 1), *(Attended(1, c, "mlp", False, is_counted=False) for c in (2, 3))]
        for given, share in ((everybody, 1.0), (missing, 0.5)):
            told = account.report(account.after({}, given))["against"]
            assert told["others"]["clients"]["0"] == pytest.approx(epsilon(Release(2.0 * math.sqrt(share))))
            assert told["server"]["clients"]["0"] == pytest.approx(epsilon(Release(1.0)))

    def test_who_is_not_in_the_sum_has_told_the_others_nothing(self):
        account = account_of(self.LINKS, federation=TAKEN)
        given = [*attended(0, 1, 2), Attended(1, 3, "mlp", False, is_counted=False)]
        told = account.report(account.after({}, given))["against"]
        assert told["others"]["clients"]["3"] == 0
        assert told["server"]["clients"]["3"] == pytest.approx(epsilon(Release(1.0)))

    def test_absent_clients_take_their_noise_away_too(self):
        """They were sent nothing, and yet the others were told to share the noise with them."""
        account = account_of(self.LINKS, federation=TAKEN)
        told = account.report(account.after({}, [replace(one, parties=4) for one in attended(0, 1)]))["against"]
        assert told["others"]["clients"]["0"] == pytest.approx(epsilon(Release(2.0 * math.sqrt(0.5))))
        assert told["server"]["clients"]["0"] == pytest.approx(epsilon(Release(1.0)))

    def test_sums_of_weights_are_those_of_one_model(self):
        models = {"a": {"arch": "mlp", "hidden": [4]}, "b": {"arch": "mlp", "hidden": [5]}}
        account = account_of(self.LINKS, federation=TAKEN, models=models)
        given = [Attended(1, c, name, False) for c, name in enumerate("aaab")]
        told = account.report(account.after({}, given))["against"]
        assert told["others"]["clients"]["0"] == pytest.approx(epsilon(Release(2.0)))
        assert told["others"]["clients"]["3"] == pytest.approx(epsilon(Release(2.0)))
        assert told["server"]["clients"]["0"] == pytest.approx(epsilon(Release(2.0 / math.sqrt(3))))
        assert told["server"]["clients"]["3"] == pytest.approx(epsilon(Release(2.0)))

    def test_a_sum_that_would_cost_too_much_is_objected_to(self):
        budget = epsilon(Release(2.0)) * 1.01
        account = account_of(self.LINKS, {"budget": budget}, federation=TAKEN)
        assert account.objection({}, attended(0, 1, 2, 3)) is None
        missing = [*attended(0, 1), *(Attended(1, c, "mlp", False, is_counted=False) for c in (2, 3))]
        reason = account.objection({}, missing)
        assert reason == "only 2 of 4 clients are in the sum, and their noise is too little for the budget of client 0"


class TestBudget:
    def test_nobody_is_asked_whose_next_visit_would_be_too_much(self):
        budget = epsilon(Release(2.0, 1.0, 2)) + 1e-6
        account = account_of(privacy={"budget": budget})
        books = account.after({}, attended(0, 1))
        assert account.spent(books, range(4)) == set()
        books = account.after(books, attended(1, number=2))
        assert account.spent(books, range(4)) == {1}
        assert account.record(books).left == 3
        assert account.record(books).epsilon <= budget

    def test_without_a_budget_nobody_is_ever_spent(self):
        account = account_of()
        assert account.spent(account.after({}, attended(*[0] * 50)), [0]) == set()
        assert account.record({}).left is None


class TestPlanning:
    def test_visits_are_those_that_will_be_drawn(self):
        drawn = {1: [0, 1], 2: [1, 2], 3: [1]}
        assert planned_visits(drawn.__getitem__, 3) == {0: 1, 1: 3, 2: 1}

    @pytest.mark.parametrize(
        ("unit", "budget"), [("client", 0.5), ("client", 20.0), ("example", 3.0)], ids=["little", "much", "sampled"]
    )
    def test_the_noise_that_is_found_is_enough_and_hardly_more(self, unit, budget):
        links, training = ((CLIP, NOISE), {}) if unit == "client" else ((), {"training": DP_SGD})
        claim = account_of(links, {"unit": unit, "budget": 100.0}, **training).claim
        claim = replace(claim, settings=claim.settings.model_copy(update={"budget": budget}))
        plan = Plan({0: 4, 1: 9}, {0: 30, 1: 200}.__getitem__)

        def with_multiplier(noise):
            upload = [link.model_copy(update={"multiplier": noise}) for link in claim.recipe.upload[1:]]
            recipe = claim.recipe.model_copy(update={"upload": (*claim.recipe.upload[:1], *upload)})
            privacy = ExamplePrivacy(multiplier=noise) if unit == "example" else None
            return replace(claim, recipe=recipe, training=claim.training.model_copy(update={"privacy": privacy}))

        found = least_noise(plan, with_multiplier)
        assert max(plan.epsilons(with_multiplier(found)).values()) <= budget
        assert max(plan.epsilons(with_multiplier(found * 0.998)).values()) > budget

    def test_multipliers_are_rounded_up(self):
        assert rounded_up(1.23401) == 1.235
        assert rounded_up(0.1) == 0.1
        assert rounded_up(12345.1) == 12350.0


def test_many_thousand_clients_are_counted_in_one_go():
    account = account_of()
    everybody = [Attended(1, client, "mlp", False) for client in range(20_000)]
    books = account.after({}, everybody)
    assert account.record(books).epsilon == pytest.approx(epsilon(Release(2.0)))
    assert len(account.report(books)["against"]["everybody"]["clients"]) == 20_000


def test_books_are_a_table_that_a_checkpoint_takes():
    books = Books([{3: {(1.0, 0.5): 2}}, {}])
    written = books.written()
    assert written["releases"].dtype == torch.float64
    assert written["releases"].tolist() == [[0.0, 3.0, 1.0, 0.5, 2.0]]
    assert Books.read(2, written).pages == books.pages
    assert Books([{}, {}]).written() == {}
