"""Heads that parse: the restriction of a decoder to trees, the chart and its loss, and a whole run."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import all_overrides, load_settings
from dragoman.data.batches.labelled import collate_labelled
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.evaluation.evaluate_labels import evaluate_labels
from dragoman.models.heads.chart import ChartHeadConfig
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig, teacher_inputs
from dragoman.models.interface import Memory
from dragoman.native.chart import best_spans, span_indices
from dragoman.prediction.heads.inputs import ModelInput
from dragoman.prediction.heads.parsing import ChartReader, ChartTree, SentenceInput, TreeGenerator, allowed_tags
from dragoman.prediction.heads.trees import chart_trees, generate_trees
from dragoman.prediction.predict import predict
from dragoman.prediction.predictor import Predictor
from dragoman.tasks.labelled.config import ParsingRun
from dragoman.tasks.labelled.parsing import ParsingJob, chart_loss, find_punctuation
from dragoman.tasks.train import train
from dragoman.text.symbols import BOS, PAD, UNK
from dragoman.text.trees.brackets import parse_tree
from dragoman.text.trees.linearization import linearise
from dragoman.text.trees.tree import Tree
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


def grammar(random: Random, depth: int = 0) -> str:
    """Return a random tree of an unambiguous grammar."""

    def phrase(depth: int) -> str:
        noun = f"(DT {random.choice(['the', 'a'])}) (NN {random.choice(['cat', 'dog', 'man'])})"
        if depth < 2 and random.random() < 0.4:
            return f"(NP (NP {noun}) (SBAR (WDT that) {clause(depth + 1)}))"
        return f"(NP {noun})"

    def clause(depth: int) -> str:
        return (
            f"(VP (VB {random.choice(['saw', 'met'])}) {phrase(depth)})" if random.random() < 0.7 else "(VP (VB slept))"
        )

    return f"(S {phrase(depth)} {clause(depth)} (. .))"


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, random = tmp_path_factory.mktemp("treebank"), Random(4)
    trees = sorted({grammar(random) for _ in range(400)})
    random.shuffle(trees)
    (folder / "valid.mrg").write_text("\n".join(trees[:30]) + "\n")
    (folder / "train.mrg").write_text("\n".join(trees[30:]) + "\n")
    return folder


SETTINGS = {
    "text": {"subword": {"kind": "whitespace"}},
    "model": {
        "width": 32,
        "encoder": {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 64, "norm": "pre"},
        "positions": {"kind": "rotary"},
        "dropout": 0,
    },
}


def parsing_run(head: dict[str, object], train: object, valid: object, steps: int, out: Path) -> dict[str, object]:
    """The settings of a run that trains a small parser."""
    return {
        **SETTINGS,
        "model": {**SETTINGS["model"], "head": head},
        "task": {"kind": "parsing"},
        "data": {"train": train, "valid": valid, "batch": {"tokens": 500}},
        "train": {
            "max_steps": steps,
            "validate_every": steps,
            "schedule": {"kind": "linear", "peak": 0.01, "warmup": 0.1},
            "average": {"count": 0},
            "device": "cpu",
            "precision": "float32",
        },
        "out": str(out),
    }


CHART = {"kind": "chart", "hidden": 32, "dropout": 0}


@pytest.mark.parametrize(
    ("head", "steps"),
    [
        (
            {
                "kind": "tree_decoder",
                "beam": 1,
                "dropout": 0,
                "decoder": {"kind": "transformer", "layers": 1, "heads": 2, "feedforward": 64, "norm": "pre"},
            },
            250,
        ),
        (CHART, 60),
    ],
)
def test_a_generated_grammar_is_learned(treebank: Path, tmp_path: Path, head: dict[str, object], steps: int) -> None:
    corpus = [{"path": str(treebank / "train.mrg"), "tag": "toy", "weight": 2}]
    valid = {"path": str(treebank / "valid.mrg"), "tag": "toy"}
    train(parsing_run(head, corpus, valid, steps, tmp_path / "run"), quiet=True)
    (report,) = evaluate_labels(tmp_path / "run", treebank / "valid.mrg", {"tag": "toy"}, quiet=True).reports
    f1 = report["bracket_f1"].value
    assert f1 is not None and f1 >= 95
    assert not report.warnings
    predict(tmp_path / "run", treebank / "valid.mrg", tmp_path / "trees.mrg", {"tag": "toy"}, quiet=True)
    lines = (tmp_path / "trees.mrg").read_text().splitlines()
    assert [parse_tree(line).texts for line in lines] == [
        parse_tree(line).texts for line in (treebank / "valid.mrg").read_text().splitlines()
    ]
    predictor = Predictor.load(tmp_path / "run", "cpu")
    one, none = predictor.predict([ParsedSentence(parse_tree(lines[0]).texts, tag="toy"), ""])
    assert str(one.tree) == lines[0]  # type: ignore[attr-defined]
    assert none.tree == Tree(())  # type: ignore[attr-defined]
    card = (tmp_path / "run/README.md").read_text()
    assert "bracket F1" in card and "| NP |" in card
    with pytest.raises(ConfigError, match="has no tag 'wsj'"):
        predictor.predict([ParsedSentence(("a",), tag="wsj")])


def test_a_parser_learns_from_its_own_trees_beside_correct_ones(treebank: Path, tmp_path: Path) -> None:
    trees = (treebank / "train.mrg").read_text().splitlines()
    gold, silver, texts = (tmp_path / name for name in ("gold.mrg", "silver.mrg", "texts.txt"))
    gold.write_text("\n".join(trees[:40]) + "\n")
    sentences = [parse_tree(tree).texts for tree in trees[40:120]]
    texts.write_text("\n" + "\n".join(map(" ".join, sentences)) + "\n")
    valid = str(treebank / "valid.mrg")
    train(parsing_run(CHART, str(gold), valid, 40, tmp_path / "first"), quiet=True)
    assert predict(tmp_path / "first", texts, silver, quiet=True) == 81
    read = [parse_tree(line) for line in silver.read_text().splitlines() if line]
    assert [tree.texts for tree in read] == sentences
    corpora = [str(gold), {"path": str(silver), "weight": 0.5}]
    run = parsing_run(CHART, corpora, valid, 60, tmp_path / "second")
    job = ParsingJob(ParsingRun.model_validate(run))
    job.prepare()
    halves = []
    for epoch in range(2):
        rows = sorted(row for batch in job.plan(epoch).batches for row in batch.tolist())
        assert rows[:40] == list(range(40))
        halves.append(set(rows[40:]))
    assert [len(half) for half in halves] == [40, 40]
    assert halves[0] | halves[1] == set(range(40, 120))
    train(run, quiet=True)
    scores = [
        evaluate_labels(tmp_path / name, valid, quiet=True).reports[0]["bracket_f1"].value
        for name in ("first", "second")
    ]
    assert scores[1] is not None and scores[1] >= 90
    assert scores[0] is not None and scores[1] >= scores[0]


def test_unknown_labels_of_validation_trees_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "train.mrg").write_text("(S (NP (NN a)) (VP (VB b)))\n" * 3)
    (tmp_path / "valid.mrg").write_text("(S (QP (CD a)) (S (VP (VB b))))\n")
    for head, unknown in (({"kind": "tree_decoder"}, 2), ({"kind": "tree_decoder", "tagged": False}, 1), (CHART, 3)):
        run = parsing_run(head, str(tmp_path / "train.mrg"), str(tmp_path / "valid.mrg"), 1, tmp_path / "run")
        job = ParsingJob(ParsingRun.model_validate(run))
        job.prepare()
        assert (
            f"{unknown} labels of {tmp_path / 'valid.mrg'} do not occur in the training data" in capsys.readouterr().err
        )


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


def test_a_chart_has_no_label_smoothing() -> None:
    settings = {"task.kind": "parsing", "data": {"train": "a.mrg", "valid": "b.mrg"}, "out": "run"}
    run = load_settings(None, all_overrides(settings, {"train.objective.label_smoothing": 0.1}), ParsingRun)
    assert run.model.head.kind == "tree_decoder"
    with pytest.raises(ConfigError, match="label_smoothing does not apply to a head of kind chart"):
        load_settings(
            None,
            all_overrides(settings, {"model.head.kind": "chart", "train.objective.label_smoothing": 0.1}),
            ParsingRun,
        )
