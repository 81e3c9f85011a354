"""Whatever is wrong with a part from outside is said in one sentence, before anything is run."""

from __future__ import annotations

import re

import pytest

from fedfuse import Objective, Partition
from fedfuse.core.errors import ConfigError
from fedfuse.experiment.config import changes
from fedfuse.experiment.run import Experiment
from fedfuse.testing.slots import SLOTS
from tests.cli.test_cli import in_process
from tests.outside.parts import TINY

__all__ = ["in_process"]


def local(kind, **values):
    return {"method": {"name": "fedavg", "local": {"kind": kind, **values}}}


SENTENCES = {
    "a missing module": (
        local("nowhere:Part"),
        "method.local: kind: nowhere cannot be imported from the working folder or the installed packages: "
        "ModuleNotFoundError: No module named 'nowhere'",
    ),
    "a name with a typo": (
        local("my_methods:Dinamic"),
        "method.local: kind: unknown name 'Dinamic' (did you mean 'Dynamic'?)",
    ),
    "a missing name": (
        local("my_merge:Xyz"),
        "method.local: kind: unknown name 'Xyz' (known: Median)",
    ),
    "a class of another slot": (
        local("my_merge:Median"),
        "method.local: my_merge:Median is no Objective; derive it from fedfuse.Objective",
    ),
    "something that is no class": (
        local("my_methods:FEDDYN"),
        "method.local: my_methods:FEDDYN is no Objective; derive it from fedfuse.Objective",
    ),
    "a bad value": (
        local("my_methods:Dynamic", strength=-1),
        "method.local.strength is -1, but should be greater than or equal to 0",
    ),
    "an unknown key": (
        local("my_methods:Dynamic", strenght=1),
        "method.local: unknown key 'strenght' (did you mean 'strength'?)",
    ),
    "a missing value": ({"partition": {"kind": "my_partition:Halving"}}, "partition.clients is missing"),
    "no module": (local(":Dynamic"), "method.local: kind: ':Dynamic' should be written as package.module:name"),
    "no name": (local("my_methods:"), "method.local: kind: 'my_methods:' should be written as package.module:name"),
    "two colons": (local("a:b:c"), "method.local: kind: 'a:b:c' should be written as package.module:name"),
    "a kind with a typo": (local("proximl"), "method.local: unknown kind 'proximl' (did you mean 'proximal'?)"),
    "a part of ours by its address": (
        local("fedfuse.parts.local:Proximal"),
        "method.local.kind is 'fedfuse.parts.local:Proximal', but should be 'proximal'",
    ),
    "a method with a typo": (
        {"method": "my_methods:FEDDYM"},
        "method: unknown name 'FEDDYM' (did you mean 'FEDDYN'?)",
    ),
    "a class in the place of a method": (
        {"method": "my_methods:Dynamic"},
        "method: my_methods:Dynamic is no fedfuse.Method but a class",
    ),
    "a metric with a typo": (
        {"evaluation": {"metrics": ["my_metric:Toptwo"]}},
        "evaluation.metrics.0: kind: unknown name 'Toptwo' (did you mean 'TopTwo'?)",
    ),
}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("case", list(SENTENCES))
def test_a_file_is_refused_in_one_sentence(case):
    sections, sentence = SENTENCES[case]
    with pytest.raises(ConfigError) as caught:
        Experiment({**TINY, **sections})
    assert str(caught.value) == f"the experiment: {sentence}"


MODULES = {
    "raises": (
        "raise RuntimeError('no luck\\ntoday')",
        "raises cannot be imported from .*: RuntimeError: no luck \\(raises.py, line 1\\)$",
    ),
    "leaves": ("raise SystemExit(3)", "leaves cannot be imported from .*: SystemExit: 3 \\(leaves.py, line 1\\)$"),
    "broken": ("def part(:", r"broken cannot be imported from .*: SyntaxError: invalid syntax \(broken.py, line 1\)$"),
    "partly": (
        "import fedfuse\nclass Part(fedfuse.Objective):\n    pass",
        "partly:Part has no begin, without which it is no Objective; write it$",
    ),
}


@pytest.mark.parametrize("name", list(MODULES))
def test_a_module_that_fails_is_named_with_its_reason(own_module, name):
    text, sentence = MODULES[name]
    (own_module / f"{name}.py").write_text(text)
    with pytest.raises(ConfigError, match=f"^the experiment: method.local: (kind: )?{sentence}"):
        Experiment({**TINY, **local(f"{name}:Part")})


METHOD_FILE = """
from dataclasses import replace
from fedfuse.methods import METHODS
TAKEN = replace(METHODS["fedavg"], title="Mine")
ODD = replace(METHODS["fedavg"], name="a/b")
"""


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("TAKEN", "method: own_methods:TAKEN calls itself fedavg, as one of ours; give it another name"),
        ("ODD", "method: own_methods:ODD calls itself 'a/b', but should have a name for files, as feddf-2"),
    ],
)
def test_a_method_whose_name_cannot_be_used(own_module, name, sentence):
    (own_module / "own_methods.py").write_text(METHOD_FILE)
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        Experiment({**TINY, "method": f"own_methods:{name}"})


PARTITIONS = """
import numpy as np
import fedfuse

class Given(fedfuse.Partition):
    positions: list[list[int]]

    def assign(self, labels, classes, key, owners=None):
        return [np.array(own, dtype=np.int64) for own in self.positions]
"""


@pytest.mark.parametrize(
    ("positions", "sentence"),
    [
        ([[0, 1], [1, 2]], "gives an example to two clients"),
        ([[0, 1], []], "leaves a client without examples"),
        ([], "leaves a client without examples"),
        ([[0, 1], [5, 5000]], "gives positions outside of the 78 training examples"),
        ([[-1, 0]], "gives positions outside of the 78 training examples"),
    ],
)
def test_a_partition_that_cannot_be_is_refused_before_round_1(own_module, positions, sentence):
    (own_module / "own_partition.py").write_text(PARTITIONS)
    experiment = Experiment({**TINY, "partition": {"kind": "own_partition:Given", "positions": positions}})
    with pytest.raises(ConfigError, match=f"^partition own_partition:Given {sentence}$"):
        experiment.run(own_module / "run")
    assert not (own_module / "run").exists()


class Outer:
    class Inner(Objective):
        def begin(self, client):
            raise NotImplementedError


def inner():
    class Hidden(Objective):
        def begin(self, client):
            raise NotImplementedError

    return Hidden()


@pytest.mark.parametrize("part", [inner(), Outer.Inner()], ids=["in a function", "in a class"])
def test_an_object_of_a_class_that_no_other_process_finds(part):
    with pytest.raises(ConfigError, match="was made inside a function or class, where no other process finds it"):
        Experiment({**TINY, "method": {"name": "fedavg", "local": part}})


def test_a_class_in_the_place_of_an_object():
    with pytest.raises(ConfigError, match=r"^Partition is a class, but should be an object of it: Partition\(...\)$"):
        Experiment({**TINY, "partition": Partition})


@pytest.mark.parametrize("place", ["models", "method"])
def test_a_lambda(place):
    raw = {**TINY, place: lambda: None} if place == "models" else {**TINY, "method": {"local": lambda: None}}
    with pytest.raises(ConfigError, match="is a lambda, or was made inside something else"):
        Experiment(changes.merge({}, raw))


def test_the_command_line_says_it_and_ends_with_2(in_process, here):
    done = in_process("run", "digits", "--set", 'method.local={kind: "my_methods:Dinamic"}', folder=here)
    assert done.returncode == 2
    assert done.stderr == ("fedfuse: digits: method.local: kind: unknown name 'Dinamic' (did you mean 'Dynamic'?)\n")


def test_every_base_that_a_sentence_names_is_at_the_front_door():
    import fedfuse

    assert {slot.base.__name__ for slot in SLOTS} <= set(fedfuse.__all__)
