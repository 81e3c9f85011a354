"""A client's number belongs to the key that was registered for it."""

from __future__ import annotations

import json
import logging
import threading

import pytest

from fedfuse.core.errors import ConfigError
from fedfuse.experiment.run import Experiment
from fedfuse.flower.parties import FOLDER, Parties, Party
from fedfuse.flower.server import run_on
from tests.flower.federation import assert_same, flower_config, grid_for, local_config
from tests.flower.test_guests import LINEAR, OPEN_HOUSE, guests_of

pytestmark = pytest.mark.usefixtures("without_pictures")


def registered(folder, nodes):
    parties = Parties(folder)
    parties.write({client: Party(node, f"SHA256:{client}") for client, node in nodes.items()})
    return parties


class TestFile:
    def test_everybody_comes_back(self, tmp_path):
        parties = registered(tmp_path, {2: 2**64 - 1, 10: 5})
        assert Parties(tmp_path).registered() == {2: Party(2**64 - 1, "SHA256:2"), 10: Party(5, "SHA256:10")}
        assert parties.may_play(2**64 - 1, 2)
        assert not parties.may_play(5, 2)
        assert not parties.may_play(5, 3)

    def test_a_change_is_seen_at_once(self, tmp_path):
        parties = registered(tmp_path, {0: 1})
        assert parties.may_play(1, 0)
        registered(tmp_path, {0: 2})
        assert (parties.may_play(1, 0), parties.may_play(2, 0)) == (False, True)
        (tmp_path / "parties.json").unlink()
        assert not parties.may_play(2, 0)

    def test_without_a_folder_everybody_may(self):
        assert Parties.here({}).may_play(1, 7)
        assert Parties.here({FOLDER: ""}).may_play(1, 7)

    def test_with_a_folder_in_which_nobody_is_nobody_may(self, tmp_path):
        assert not Parties.here({FOLDER: str(tmp_path)}).may_play(1, 0)

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "[1]", '{"0": 1}', '{"0": {"node": "x", "key": "y"}}', '{"a": {"node": 1, "key": "y"}}',
                 '{"0": {"node": 1}}', "[" * 100_000, "null", "\udcff"],
    )  # fmt: skip
    def test_damaged(self, tmp_path, text):
        (tmp_path / "parties.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(ConfigError, match=r"parties\.json is damaged; delete it and register"):
            Parties(tmp_path).may_play(1, 0)

    def test_nobody_is_lost_when_many_register_at_once(self, tmp_path):
        def add(client):
            parties = Parties(tmp_path)
            with parties.alone():
                parties.write({**parties.registered(), client: Party(client, "key")})

        threads = [threading.Thread(target=add, args=(client,)) for client in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(map(int, json.loads((tmp_path / "parties.json").read_text()))) == list(range(40))

    def test_a_hundred_thousand(self, tmp_path):
        parties = registered(tmp_path, {client: client + 1 for client in range(100_000)})
        assert all(parties.may_play(client + 1, client) for client in range(0, 100_000, 10))
        nodes = list(range(1, 100_001))
        assert parties.pairs(range(100_000), nodes[::-1]) == list(zip(range(100_000), nodes, strict=True))


class TestSeats:
    def test_registered_nodes_make_the_same_bits(self, tmp_path):
        config = flower_config()
        parties = registered(tmp_path, {client: 100 - client for client in range(4)})
        flower = run_on(grid_for(config, tmp_path), config, tmp_path / "flower", parties)
        assert_same(flower, Experiment(local_config()).run(tmp_path / "local"), tmp_path / "nodes")

    def test_who_says_first_that_it_is_somebody_else_gets_nothing(self, tmp_path, caplog):
        """Node 5 is asked before the rightful one, and answers for client 2."""
        config = flower_config(federation={"rounds": 2})
        grid = grid_for(config, tmp_path)
        thief, honest = grid_for(config, tmp_path).nodes[98], grid.nodes[98]
        grid.nodes = {5: thief, **grid.nodes}
        parties = registered(tmp_path, {client: 100 - client for client in range(4)})
        with caplog.at_level(logging.WARNING, "flwr"):
            logging.getLogger("flwr").propagate = True
            result = run_on(grid, config, tmp_path / "flower", parties)
        assert [record.refused for record in result.history] == [(), ()]
        assert [m.metadata.message_type for m in thief.messages] == ["query"]
        assert sum(m.metadata.message_type == "train" for m in honest.messages) == 2
        assert "security: node 5 says that it is client 2, but its key was not registered for" in caplog.text

    def test_two_who_change_places_get_nothing(self, tmp_path):
        config = flower_config(federation={"rounds": 1})
        grid = grid_for(config, tmp_path)
        parties = registered(tmp_path, {0: 100, 1: 98, 2: 99, 3: 97})
        assert run_on(grid, config, tmp_path / "flower", parties).history[0].absent == (1, 2)

    def test_guests_sit_where_their_keys_belong(self, tmp_path):
        config = flower_config(models=LINEAR, federation={"rounds": 1}, engine=OPEN_HOUSE)
        grid, _ = guests_of(config)
        parties = registered(tmp_path, {0: 53, 1: 52, 2: 51, 3: 7})
        result = run_on(grid, config, tmp_path / "run", parties)
        assert result.history[0].absent == (3,)
        clients = {node: n.messages[-1].content["config"]["client"] for node, n in grid.nodes.items() if node != 50}
        assert clients == {53: 0, 52: 1, 51: 2}
        assert [m.metadata.message_type for m in grid.nodes[50].messages] == ["query"]
