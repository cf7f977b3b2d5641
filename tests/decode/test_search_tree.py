"""The tree of a search: its sums add up, it has all continuations of a plain search, and it determines the result."""

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_search import may_follow, next_log_probabilities
from searching import searched
from test_search_exact import COVERAGE, SIZE, SOURCES, TOYS, configs, one, same
from test_search_published import in_groups
from toy_decoders import AttendingToy, MarkovToy, RecurrentToy, toy_memory

from dragoman.decode.search import SearchConfig
from dragoman.decode.search_tree import Fate, SearchTree
from dragoman.models.interface import Memory
from dragoman.text.symbols import EOS

LIVING = {Fate.CONTINUED, Fate.LIMIT, Fate.STUCK, Fate.DONE}
Decoder = MarkovToy | RecurrentToy | AttendingToy


def result(tree: SearchTree, config: SearchConfig) -> list[tuple[tuple[int, ...], bool, float]]:
    """The n-best list that a tree contains (docs/reference/search-tree.md): tokens, finished, score."""
    lists = defaultdict(list)
    for number in tree.ends():
        lists[tree[number].group].append(number)
    found: dict[tuple[tuple[int, ...], bool], float] = {}
    size = config.beam // (1 if config.diversity is None else config.diversity.groups)
    for rank in range(size):
        bests = [numbers[rank] for _, numbers in sorted(lists.items()) if rank < len(numbers)]
        for number in sorted(bests, key=lambda number: (tree[number].fate is not Fate.FINISHED, -tree[number].score)):
            finished = tree[number].fate is Fate.FINISHED
            path = tree.path(number)
            if len(found) < config.nbest:
                found.setdefault((path[:-1] if finished else path, finished), tree[number].score)
    ordered = sorted(found.items(), key=lambda each: (not each[0][1], -each[1]))
    return [(tokens, finished, score) for (tokens, finished), score in ordered]


def check_sums(tree: SearchTree, decoder: Decoder, memory: Memory) -> None:
    root = tree[0]
    assert (root.parent, root.step, root.token, root.rank) == (None, 0, None, None)
    for number, node in enumerate(tree):
        if node.parent is None:
            continue
        parent = tree[node.parent]
        assert node.parent < number and node.step == parent.step + 1
        assert parent.fate is Fate.CONTINUED
        assert node.total == pytest.approx(parent.total + node.log_probability, abs=1e-5)
        assert node.token is not None
        expected = next_log_probabilities(decoder, memory, tree.path(node.parent))[node.token]
        assert node.log_probability == pytest.approx(float(expected), abs=1e-4)
        assert (node.token == EOS) or node.fate is not Fate.FINISHED


def check_steps(tree: SearchTree, decoder: Decoder, memory: Memory, config: SearchConfig) -> None:
    """Each step's nodes are the best continuations of the surviving hypotheses, plus the forbidden ones."""
    steps = max(node.step for node in tree)
    finished = 0
    for step in range(1, steps + 1):
        now = [node for node in tree if node.step == step]
        before = [number for number, node in enumerate(tree) if node.step == step - 1 and node.fate in LIVING]
        allowed, others = [], []
        for number in before:
            tokens = tree.path(number)
            for token, log_probability in enumerate(next_log_probabilities(decoder, memory, tokens)):
                to = allowed if may_follow(memory, config, tokens, token) else others
                to.append((tree[number].total + float(log_probability), number, token))
        left = config.beam - finished if config.shrinking else config.beam
        most = 1 if config.beam == 1 else 2 * config.beam
        expected = sorted(allowed, key=lambda each: -each[0])[:most]
        ranked = sorted((node for node in now if node.rank is not None), key=lambda node: node.rank or 0)
        totals = {each[1:]: each[0] for each in allowed}
        found = [(node.parent, node.token) for node in ranked]
        assert len(set(found)) == len(found)
        # sums that are equal apart from rounding may have either order
        assert [totals[each] for each in found] == pytest.approx([each[0] for each in expected], abs=1e-5)
        forbidden = {(node.parent, node.token) for node in now if node.fate is Fate.FORBIDDEN}
        worst = expected[-1][0] if len(expected) == most else -float("inf")
        would = sorted((each for each in others if each[0] > worst), key=lambda each: -each[0])[:most]
        assert forbidden == {each[1:] for each in would}
        lives = [node for node in ranked if node.fate in LIVING]
        assert len(lives) <= left
        for node in ranked:
            if node.fate is Fate.OUTSIDE and node.token != EOS:
                assert len(lives) == config.beam or config.shrinking
                assert all(node.total <= other.total for other in lives)
            assert node.fate is not Fate.PASSED
            assert config.shrinking or node.fate is not Fate.NARROWED
        finished += sum(node.fate is Fate.FINISHED for node in ranked)


@given(decoder=TOYS, sources=SOURCES, config=configs(), prefix=st.lists(st.just(5), max_size=2))
def test_a_tree_contains_what_a_plain_search_considers(
    decoder: RecurrentToy, sources: list, config: SearchConfig, prefix: list
) -> None:
    memory, kept = toy_memory(sources), config.model_copy(update={"tree": True})
    prefixes = [prefix[row % 2 :] for row in range(len(sources))]
    found = searched(decoder, memory, kept, prefixes)
    for row, plain in enumerate(searched(decoder, memory, config, prefixes)):
        assert found[row] == plain and not any(each.tree for each in plain)
        alone, tree = one(memory, row), found[row][0].tree
        assert tree is not None and tree.prefix == tuple(prefixes[row])
        assert all(each.tree is tree for each in found[row])
        check_sums(tree, decoder, alone)
        check_steps(tree, decoder, alone, config)
        assert result(tree, config) == [(each.tokens, each.finished, each.score) for each in plain]


@given(seed=st.integers(0, 10**6), sources=SOURCES, config=in_groups(), beta=COVERAGE | st.just(0.0))
def test_the_result_of_groups_can_be_reconstructed_from_the_tree(
    seed: int, sources: list, config: SearchConfig, beta: float
) -> None:
    decoder, memory = AttendingToy(SIZE, seed), toy_memory(sources)
    config = config.model_copy(update={"coverage_penalty": beta, "tree": True})
    for row, found in enumerate(searched(decoder, memory, config)):
        tree = found[0].tree
        assert tree is not None
        check_sums(tree, decoder, one(memory, row))
        expected = [(each.tokens, each.finished) for each in found]
        read = result(tree, config)
        assert [each[:2] for each in read] == expected
        assert [each[2] for each in read] == pytest.approx([each.score for each in found], abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(decoder=TOYS, sources=SOURCES, data=st.data())
def test_a_tree_does_not_depend_on_the_batch(decoder: RecurrentToy, sources: list, data: st.DataObject) -> None:
    mixed = [data.draw(configs()).model_copy(update={"tree": True}) for _ in sources]
    for row, found in enumerate(searched(decoder, toy_memory(sources, extra=1), mixed)):
        (alone,) = searched(decoder, toy_memory([sources[row]]), mixed[row])
        same(found, alone)
        assert found[0].tree is not None and alone[0].tree is not None
        nodes = [[(*node[:3], *node[6:]) for node in each[0].tree] for each in (found, alone)]  # type: ignore[union-attr]
        assert nodes[0] == nodes[1]


def test_every_fate_occurs() -> None:
    """Otherwise the tests above would not cover some of them."""
    met = set()
    decoder, memory = MarkovToy(SIZE, 2), toy_memory([[1, 2, 3], [3], [4, 4]])
    plain = {"beam": 4, "length_factor": 0, "length_margin": 6, "tree": True}
    for changes in (
        {"minimum_length": 2},
        {"shrinking": True, "nbest": 4},
        {"no_repeat_ngram": 1, "minimum_length": 5, "length_margin": 9},
        {"diversity": {"groups": 2, "strength": 4.0}},
    ):
        for found in searched(decoder, memory, SearchConfig.model_validate({**plain, **changes})):
            assert found[0].tree is not None
            met |= {node.fate for node in found[0].tree}
    assert met == set(Fate)
