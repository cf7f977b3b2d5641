"""Heads that parse: the restriction of a decoder to trees, and the chart and its loss."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.base.errors import ConfigError, DataError
from dragoman.data.batches.labelled import collate_labelled
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.parsing import (
    ChartReader,
    ChartTree,
    SentenceInput,
    TreeGenerator,
    allowed_tags,
)
from dragoman.inference.prediction.heads.trees import chart_trees, generate_trees
from dragoman.models.heads.chart import ChartHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig, teacher_inputs
from dragoman.models.interface import Memory
from dragoman.native.chart import best_spans, span_indices
from dragoman.tasks.labelled.parsing import chart_loss, find_punctuation
from dragoman.text.symbols import BOS, PAD, UNK
from dragoman.text.trees.brackets import parse_tree
from dragoman.text.trees.linearization import linearise
from dragoman.text.vocabularies.whitespace import WhitespaceTokenizer

LABELS, TAGS = ("NP", "S", "VP"), (",", "DT", "NN")
PUNCTUATION = {",": (",",)}


def inputs_of(lengths: Sequence[int]) -> list[ModelInput]:
    return [
        SentenceInput((1, *range(4, 4 + n), 2), tuple(range(1, n + 1)), words=(*["a"] * (n - 1), ",")) for n in lengths
    ]


def random_trees(seed: int, lengths: Sequence[int], **settings: object) -> list[tuple[list[str], float]]:
    """Return what a decoder with random parameters generates, for sentences that end with a comma."""
    torch.manual_seed(seed)
    config = TreeDecoderHeadConfig.model_validate(
        {
            "labels": LABELS,
            "tags": TAGS,
            "punctuation": PUNCTUATION,
            "decoder": {"kind": "transformer", "layers": 1, "heads": 1, "feedforward": 8},
            **settings,
        }
    )
    head = config.build(8, nn.Embedding(2, 8)).eval()
    nn.init.normal_(head.decoder.projection.weight, std=2.0)  # type: ignore[union-attr,arg-type]
    memory = Memory(torch.randn(len(lengths), max(lengths) + 2, 8), torch.ones(len(lengths), max(lengths) + 2) > 0)
    found = generate_trees(head(memory), inputs_of(lengths))
    return [(config.symbols.decode(ids), score) for ids, score in found]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("beam", "tagged"), [(1, True), (3, False)])
def test_a_decoder_with_random_parameters_generates_only_trees_with_the_words_of_the_sentence(
    seed: int, beam: int, tagged: bool
) -> None:
    lengths = (1, 2, 5, 9)
    reader = TreeGenerator(
        WhitespaceTokenizer(["a", ","]),
        TreeDecoderHeadConfig(labels=LABELS, tags=TAGS, punctuation=PUNCTUATION, tagged=tagged),
        None,
    )
    for n, (symbols, score) in zip(lengths, random_trees(seed, lengths, beam=beam, tagged=tagged), strict=True):
        words = (*["a"] * (n - 1), ",")
        ids = [reader._symbols._ids[each] for each in symbols]
        prediction = reader.predict(ParsedSentence(words), inputs_of([n]), [(ids, score)])
        assert prediction.repairs == 0
        assert prediction.tree.texts == words
        assert prediction.tree.rooted() == prediction.tree
        assert [depth for depth in prediction.tree.depths() if depth == 0] == [0]
        assert prediction.tree.tags[-1] == ","
        assert "," not in prediction.tree.tags[:-1]
        assert np.isfinite(score)


@pytest.mark.parametrize("aligned", [True, False])
def test_one_step_of_all_symbols_equals_single_steps(aligned: bool) -> None:
    torch.manual_seed(0)
    config = TreeDecoderHeadConfig.model_validate(
        {"labels": LABELS, "tags": TAGS, "aligned": aligned, "decoder": {"layers": 2, "heads": 2, "feedforward": 8}}
    )
    head = config.build(8, nn.Embedding(2, 8)).eval()
    reader = TreeGenerator(WhitespaceTokenizer(["a", ","]), config, None)
    tree = parse_tree("(S (NP (DT a) (NN a)) (VP (NN a)) (, ,))")
    example = ParsedSentence(tree.texts, tree)
    (group,) = reader.encode([example])
    ((symbols, places),) = (torch.from_numpy(each).T.unsqueeze(1) for each in reader.target(example, group))
    inputs = teacher_inputs(symbols, BOS, PAD)
    output = head(Memory(torch.randn(1, 6, 8), torch.ones(1, 6) > 0))
    expected = output.logits(inputs, places)
    decoder = output.aligned(torch.tensor([[*group[0].places, len(group[0].ids) - 1]]))
    state = decoder.start(output.memory)
    for position in range(inputs.size(1)):
        found, state = decoder.step(inputs[:, position : position + 1], state)
        torch.testing.assert_close(found.last_logits(), expected[:, position])


def test_without_the_restriction_random_output_needs_repairs() -> None:
    reader = TreeGenerator(WhitespaceTokenizer(["a"]), TreeDecoderHeadConfig(labels=LABELS, tags=TAGS), None)
    repairs = 0
    for symbols, score in random_trees(1, [3, 5], constrained=False):
        ids = [reader._symbols._ids[each] for each in symbols]
        words = ("a",) * 5
        prediction = reader.predict(ParsedSentence(words), inputs_of([5]), [(ids, score)])
        assert prediction.tree.texts == words
        repairs += prediction.repairs
    assert repairs > 0


def test_opening_brackets_are_limited() -> None:
    runs = []
    for seed in range(6):
        for symbols, _ in random_trees(seed, [4, 6], openings=2):
            text = "".join("(" if each[0] == "(" and len(each) > 1 else "x" for each in symbols)
            runs.append(max(map(len, text.split("x"))))
    assert max(runs) == 2


def binary_trees(start: int, end: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the spans of every binary tree over words."""
    if end - start == 1:
        yield ((start, end),)
        return
    for middle in range(start + 1, end):
        for left, right in product(binary_trees(start, middle), binary_trees(middle, end)):
            yield ((start, end), *left, *right)


@cache
def numbers(words: int) -> dict[tuple[int, int], int]:
    return {
        span: number for number, span in enumerate(zip(*(each.tolist() for each in span_indices(words)), strict=True))
    }


@pytest.mark.parametrize("words", range(1, 7))
@pytest.mark.parametrize("margin", [0.0, 0.7])
def test_the_best_tree_of_a_chart_is_that_of_an_exhaustive_search(words: int, margin: float) -> None:
    random = np.random.default_rng(words)
    index = numbers(words)
    for _ in range(5):
        scores = random.normal(size=(len(index), 3)).astype(np.float32)
        scores[:, 0] = 0
        gold = random.integers(0, 3, len(index)).astype(np.int32)
        augmented = scores + margin * (np.arange(3) != gold[:, None])
        highest = augmented.max(1)
        if not (margin and gold[index[0, words]] == 0):  # the sentence is a constituent
            highest[index[0, words]] = augmented[index[0, words], 1:].max()
        expected = max(sum(float(highest[index[span]]) for span in tree) for tree in binary_trees(0, words))
        tree, total = best_spans(scores, words, margin, gold if margin else None)
        chosen = [span for span, number in index.items() if tree[number] >= 0]
        assert total == pytest.approx(expected, rel=1e-5, abs=1e-5)
        assert sum(float(augmented[index[span], tree[index[span]]]) for span in chosen) == pytest.approx(
            total, abs=1e-4
        )
        assert len(chosen) == 2 * words - 1


def test_a_score_that_is_not_a_number_is_not_reported_as_lack_of_memory() -> None:
    scores = np.zeros((6, 3), np.float32)
    scores[:, 1] = np.nan
    tree, total = best_spans(scores, 3)
    assert np.isnan(total)
    assert np.count_nonzero(tree >= 0) == 5


def chart_head(margin: float = 1.0) -> tuple[ChartHeadConfig, nn.Module]:
    torch.manual_seed(3)
    config = ChartHeadConfig(
        labels=("NP", "S", "S VP"), tags=TAGS, punctuation=PUNCTUATION, hidden=8, dropout=0, margin=margin
    )
    return config, config.build(8, nn.Embedding(2, 8)).eval()


def test_spans_are_scored_from_differences_of_states() -> None:
    _, head = chart_head()
    states = torch.randn(1, 6, 8)
    output = head(Memory(states, torch.ones(1, 6) > 0))
    positions = torch.tensor([1, 2, 4, 5])  # the second word has two tokens
    posts = output.fenceposts(0, positions)
    scores = output.spans(posts, torch.tensor([0, 1]), torch.tensor([3, 2]))
    for row, (start, end) in enumerate([(0, 3), (1, 2)]):
        first, last = positions[start], positions[end]
        difference = torch.cat(
            [states[0, last - 1, :4] - states[0, first - 1, :4], states[0, last, 4:] - states[0, first, 4:]]
        )
        expected = head.spans(head.project(difference))  # type: ignore[operator]
        torch.testing.assert_close(scores[row], expected)


def test_the_margin_loss_is_that_of_an_exhaustive_search() -> None:
    config, head = chart_head(margin=0.5)
    reader = ChartReader(WhitespaceTokenizer(["a", ","]), config, None)
    trees = [parse_tree("(S (NP (DT a) (NN a)) (, ,))"), parse_tree("(S (VP (NN a)))"), parse_tree("(NN a) (NN a)")]
    examples = [ParsedSentence(tree.texts, tree) for tree in trees]
    groups = reader.encode(examples)
    targets = [reader.target(example, group)[0] for example, group in zip(examples, groups, strict=True)]
    batch = collate_labelled([group[0].ids for group in groups], targets, [len(each) for each in targets], range(3))
    output = head(Memory(torch.randn(*batch.tokens.shape, 8), batch.mask))
    expected = torch.tensor(0.0)
    for row, (tree, (group,)) in enumerate(zip(trees, groups, strict=True)):
        positions = torch.tensor([*group.places, len(group.ids) - 1])
        size, index = len(tree.words), numbers(len(tree.words))
        starts, ends = map(torch.from_numpy, span_indices(size))
        scores = torch.cat(
            [torch.zeros(len(index), 1), output.spans(output.fenceposts(row, positions), starts, ends)], 1
        )
        gold = torch.zeros(len(index), dtype=torch.int64)
        for start, end, label in targets[row][size + 1 :].tolist():
            gold[index[start, end]] = label
        augmented = scores + 0.5 * (torch.arange(4) != gold.unsqueeze(1))
        if gold[index[0, size]] > 0:
            augmented[index[0, size], 0] = -torch.inf
        best = max(sum(augmented[index[span]].max() for span in spans) for spans in binary_trees(0, size))
        expected = expected + best - scores.gather(1, gold.unsqueeze(1)).sum()
        logits = output.tags(torch.full((size,), row), positions[:-1])
        tags = torch.tensor([TAGS.index(tag) for tag in tree.tags])
        expected = expected + nn.functional.cross_entropy(logits, tags, reduction="sum")
    loss = chart_loss(output, batch)
    torch.testing.assert_close(loss, expected)
    gradients = [torch.autograd.grad(each, list(head.parameters()), retain_graph=True) for each in (loss, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_a_chart_is_read_as_a_tree() -> None:
    config, head = chart_head()
    reader = ChartReader(WhitespaceTokenizer(["a", ","]), config, None)
    example = ParsedSentence(("a", "a", ","))
    (group,) = reader.encode([example])
    output = head(Memory(torch.randn(1, 5, 8), torch.ones(1, 5) > 0))
    (found,) = chart_trees(output, group)
    found.spans[:] = [-1, 3, 2, 0, -1, -1]  # [0, 1), [0, 2), [0, 3), [1, 2), …
    prediction = reader.predict(example, group, [found])
    assert linearise(prediction.tree)[:3] == ["(S", "(S", "(VP"]
    assert prediction.tree.texts == example.words
    assert prediction.tree.tags[2] == ","


def test_words_that_may_be_punctuation_are_found_and_no_others_have_its_tags() -> None:
    trees = [parse_tree("(S (NN a) (, ,) (POS ') ('' ') (. .))")] * 9 + [parse_tree("(S (, a) (NN .))")]
    found = find_punctuation(trees)
    assert found == {"'": ("POS", "''"), ",": (",",), ".": (".", "NN"), "a": ("NN", ",")}
    assert find_punctuation(trees * 2 + trees[:9])["."] == (".",)
    allowed = allowed_tags(["'", "b"], ("''", ",", "NN", "POS"), found)
    assert allowed.tolist() == [[True, False, False, True], [False, False, True, True]]


def test_a_label_that_is_not_listed_is_an_error() -> None:
    tree = parse_tree("(X (NN a))")
    tokenizer = WhitespaceTokenizer(["a"])
    for reader in (
        TreeGenerator(tokenizer, TreeDecoderHeadConfig(labels=LABELS, tags=TAGS), None),
        ChartReader(tokenizer, ChartHeadConfig(labels=LABELS, tags=TAGS), None),
    ):
        example = ParsedSentence(("a",), tree)
        (group,) = reader.encode([example])
        with pytest.raises(DataError, match=r"'X'.*model\.head\.labels"):
            reader.target(example, group)
        assert len(reader.target(example, group, known=False)) == 1


def test_brackets_in_a_sentence_are_read_as_in_a_treebank_and_remain_in_its_tree() -> None:
    tokenizer = WhitespaceTokenizer(["a", "-LRB-", "-RRB-"])
    words = ("(", "a", ")")
    punctuation = {"-RRB-": (",",)}
    chart = ChartReader(tokenizer, ChartHeadConfig(labels=LABELS, tags=TAGS, punctuation=punctuation), None)
    (((row,)),) = chart.encode([ParsedSentence(words)])
    assert list(row.ids[1:-1]) == tokenizer.encode("-LRB- a -RRB-")
    spans = np.array([-1, 0, 2, -1, 0, 0], np.int32)
    prediction = chart.predict(ParsedSentence(words), [row], [ChartTree(spans, np.zeros((3, 3), np.float32), 0.0)])
    assert prediction.tree.texts == words
    assert str(prediction.tree) == "(S (DT -LRB-) (DT a) (, -RRB-))"
    head = TreeDecoderHeadConfig(labels=LABELS, tags=TAGS, punctuation=punctuation, tagged=False)
    generator = TreeGenerator(tokenizer, head, None)
    ids = head.symbols.encode(parse_tree("(S (XX a) (XX a) (XX a))"))
    assert str(generator.predict(ParsedSentence(words), [row], [(ids, 0.0)]).tree) == "(S (XX -LRB-) (XX a) (, -RRB-))"


def test_special_symbols_in_an_unconstrained_output_are_repairs() -> None:
    head = TreeDecoderHeadConfig(labels=LABELS, tags=TAGS)
    reader = TreeGenerator(WhitespaceTokenizer(["a"]), head, None)
    (group,) = reader.encode([ParsedSentence(("a",))])
    ids = [UNK, *head.symbols.encode(parse_tree("(S (NN a))")), PAD]
    prediction = reader.predict(ParsedSentence(("a",)), group, [(ids, 0.0)])
    assert str(prediction.tree) == "(S (NN a))"
    assert prediction.repairs == 2


@pytest.mark.parametrize("positions", [{"kind": "learned", "limit": 40}, {"kind": "sinusoidal", "limit": 40}])
def test_positions_that_would_cut_trees_are_rejected(positions: dict[str, object]) -> None:
    head = TreeDecoderHeadConfig.model_validate({"positions": positions})
    with pytest.raises(ConfigError, match="positions of kind .* with 40 positions would cut trees"):
        head.build(8, nn.Embedding(2, 8))


def test_a_sentence_beyond_the_limit_is_an_error() -> None:
    reader = ChartReader(WhitespaceTokenizer(["a"]), ChartHeadConfig(labels=LABELS, tags=TAGS), 8)
    with pytest.raises(DataError, match="sentence 2: 9 tokens, but the model reads at most 8"):
        reader.encode([ParsedSentence(("a",) * 6), ParsedSentence(("a",) * 7)])
