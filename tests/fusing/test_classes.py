"""The classes of a fusion: names are what counts, and what does not fit is one sentence."""

from __future__ import annotations

import pytest
import torch

from fedfuse.core.errors import ConfigError
from fedfuse.fusing.classes import common_classes
from tests.fusing.members_to_ask import Matrix


def about(name, *names, classes=None):
    return Matrix(name, names or None, classes or len(names)).about


def columns(classes):
    return [own.tolist() for own in classes.sets.columns]


def test_the_union_in_the_order_of_the_first_member_that_has_them():
    classes = common_classes([about("a", "cat", "dog"), about("b", "owl", "dog", "ant")])
    assert classes.names == ("cat", "dog", "owl", "ant")
    assert columns(classes) == [[0, 1], [1, 2, 3]]
    said = torch.tensor([[1.0, 2.0, 3.0]])
    assert classes.heard(1, said).tolist() == [[2.0, 1.0, 3.0]], "dog, owl, ant"


def test_the_order_that_was_given():
    classes = common_classes([about("a", "cat", "dog"), about("b", "owl", "dog")], given=["owl", "dog", "cat"])
    assert classes.names == ("owl", "dog", "cat")
    assert columns(classes) == [[1, 2], [0, 1]]
    assert classes.heard(0, torch.tensor([[1.0, 2.0]])).tolist() == [[2.0, 1.0]]


def test_members_without_names_have_the_common_order_if_they_have_as_many():
    classes = common_classes([about("a", classes=2), about("b", "cat", "dog")])
    assert classes.members == (("cat", "dog"), ("cat", "dog"))
    assert [*classes.remarks] == ["a has no names of classes: they are taken in the common order"]
    assert common_classes([about("a", classes=2), about("b", classes=2)]).names == ("0", "1")


def test_class_maps_rename_and_put_together():
    members = [about("a", "cat", "dog"), about("b", "tabby", "hound", "tiger cat"), about("c", classes=2)]
    maps = {"b": {"tabby": "cat", "tiger cat": "cat", "hound": "dog"}, "c": ["dog", "cat"]}
    classes = common_classes(members, maps=maps)
    assert classes.names == ("cat", "dog")
    assert classes.sets.are_equal
    probabilities = torch.tensor([[0.2, 0.3, 0.5]])
    assert classes.heard(1, probabilities.log()).exp().tolist() == [pytest.approx([0.7, 0.3])]
    assert classes.heard(2, torch.tensor([[1.0, 2.0]])).tolist() == [[2.0, 1.0]]
    by_number = common_classes([*members[:2], members[2]], maps={**maps, "c": {"0": "dog", "1": "cat"}})
    assert by_number == classes


def test_very_many_classes_take_no_time():
    names = tuple(f"class {number}" for number in range(20_000))
    classes = common_classes([about("a", *names), about("b", *reversed(names))], given=names)
    assert classes.sets.are_equal
    assert not [*classes.remarks]


def test_other_spellings_are_the_same_class_and_told():
    classes = common_classes([about("a", "Polar bear", "cat"), about("b", "Cat", "polar_bear", "POLAR-BEAR 2")])
    assert classes.names == ("Polar bear", "cat", "POLAR-BEAR 2")
    assert columns(classes) == [[0, 1], [0, 1, 2]]
    assert classes.heard(1, torch.tensor([[1.0, 2.0, 3.0]])).tolist() == [[2.0, 1.0, 3.0]]
    assert [*classes.remarks] == [
        "'Cat' of b is taken for 'cat', and 1 more alike; map it to another name if it is not"
    ]


def test_who_tells_two_spellings_apart_means_two_classes():
    classes = common_classes([about("a", "polish", "Polish"), about("b", "POLISH", "dog")])
    assert classes.names == ("polish", "Polish", "POLISH", "dog")
    assert "'polish' and 'Polish' are taken for two classes; map one to the other if not" in classes.remarks


def test_spellings_of_the_list_that_was_given_and_of_maps():
    members = [about("a", "CAT", "dog"), about("b", "feline")]
    classes = common_classes(members, given=["Dog", "cat"], maps={"b": {"feline": "Cat"}})
    assert classes.names == ("Dog", "cat")
    assert classes.members == (("cat", "Dog"), ("cat",))


@pytest.mark.parametrize(
    ("members", "options", "sentence"),
    [
        ([about("a", "cat", "cat")], {}, "a has two classes named 'cat'; give a class map that tells them apart"),
        (
            [about("a", "cat", "dog")],
            {"maps": {"a": {"kat": "cat"}}},
            "the class map of a has an unknown class 'kat' (did you mean 'cat'?)",
        ),
        (
            [about("a", "cat")],
            {"maps": {"b": {}}},
            "a class map is for an unknown member 'b' (known: a)",
        ),
        ([about("a", "cat", "dog")], {"maps": {"a": ["cat"]}}, "the class map of a names 1 classes, but it has 2"),
        (
            [about("a", "cat", "dog")],
            {"maps": {"a": "cat"}},
            "the class map of a must be a list of names, or a mapping from its names to others",
        ),
        (
            [about("a", "cat", "dog")],
            {"maps": {"a": {"cat": 3}}},
            "the class map of a must be a list of names, or a mapping from its names to others",
        ),
        (
            [about("a", classes=3), about("b", "cat", "dog")],
            {},
            "a has 3 classes without names, which are not the 2 of the first member that has names; give a class map "
            "for it",
        ),
        (
            [about("a", classes=3), about("b", classes=2)],
            {},
            "no member has names of classes, and they have 2 and 3 of them; give the classes, and a class map for "
            "members that do not know them all",
        ),
        (
            [about("a", classes=2)],
            {"maps": {"a": {"0": "cat"}}},
            "a has no names of classes, and its class map does not say what class 1 is",
        ),
        (
            [about("a", "cat", "dog")],
            {"given": ["cat", "dogs"]},
            "a knows an unknown class 'dog' (did you mean 'dogs'?); add it to the classes, or map it to one of them",
        ),
        ([about("a", "cat")], {"given": ["cat", "owl"]}, "no member knows the unknown class 'owl' (known: cat)"),
        ([about("a", "cat")], {"given": ["cat", "cat"]}, "the classes of a fusion have 'cat' twice"),
        ([about("a", "cat")], {"given": "cat"}, "the classes of a fusion must be a list of names"),
    ],
)
def test_what_does_not_fit(members, options, sentence):
    with pytest.raises(ConfigError) as told:
        common_classes(members, **options)
    assert str(told.value) == sentence
