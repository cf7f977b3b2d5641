"""Guided alignment: the loss, its gradient, and the links of tokens."""

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_model import tiny_config, tiny_model, tiny_tokenizers
from toy_runs import train_toy

import dragoman
from dragoman.base.errors import ConfigError
from dragoman.data.batches.batch import collate
from dragoman.models.attention_weights import AlignedStep, AttentionChoice
from dragoman.statistical.alignment.word_aligner import AlignedPairs, AlignerConfig, WordAligner
from dragoman.tasks.translation.aligner_training import token_links
from dragoman.tasks.translation.config import TranslationRun
from dragoman.tasks.translation.objectives.guided_alignment import GuidedAlignment, GuidedAlignmentConfig, TokenLinks
from dragoman.text.words import word_indices
from dragoman.training.objectives.cross_entropy import CrossEntropy

LINKS = TokenLinks(
    np.array([0, 3, 3, 4]), np.array([0, 1, 2, 1], np.int32), np.array([0, 0, 1, 2], np.int32)
)  # pair 0: target 0 with sources 0 and 1, target 1 with source 2; pair 1: none; pair 2: target 2 with source 1


def test_rows_of_a_batch_have_their_links() -> None:
    row, target, source, share = LINKS.of_rows([2, 0, 1, 0])
    assert row.tolist() == [0, 1, 1, 1, 3, 3, 3]
    assert target.tolist() == [2, 0, 0, 1, 0, 0, 1] and source.tolist() == [1, 0, 1, 2, 0, 1, 2]
    assert share.tolist() == [1, 0.5, 0.5, 1, 0.5, 0.5, 1]


@pytest.mark.parametrize(("step", "first"), [("output", 0), ("input", 1)])
def test_the_loss_is_that_of_the_papers(step: AlignedStep, first: int) -> None:
    """A target token with n links has the loss −(1/n) Σ log α, and a token without links has none."""
    objective = GuidedAlignment(CrossEntropy(), LINKS, GuidedAlignmentConfig(step=step))
    weights = torch.rand(3, 4, 5).softmax(-1).requires_grad_()
    rows = weights[:, first:]
    loss = objective.alignment_loss(weights, [0, 1, 2])
    expected = -(rows[0, 0, 0].log() + rows[0, 0, 1].log()) / 2 - rows[0, 1, 2].log() - rows[2, 2, 1].log()
    assert loss.item() == pytest.approx(expected.item(), abs=1e-4)
    (gradient,) = torch.autograd.grad(loss, weights)
    assert gradient[1].abs().sum() == 0 and set(map(tuple, gradient.nonzero().tolist())) == {
        (0, first, 0), (0, first, 1), (0, first + 1, 2), (2, first + 2, 1)
    }  # fmt: skip


def test_the_gradient_of_the_alignment_loss_reaches_the_supervised_layer_only_and_what_precedes_it() -> None:
    layers = {"encoder": {"layers": 1}, "decoder": {"layers": 3}}
    model = tiny_model(tiny_config(**layers), tiny_tokenizers()).eval()
    batch = collate([[5, 6, 7], [8, 9], [5, 9]], [[7, 6], [9], [6, 5, 8]], range(3))
    plain = CrossEntropy()(model, batch)
    guided = GuidedAlignment(CrossEntropy(), LINKS, GuidedAlignmentConfig(weight=0.5))(model, batch)
    extra = guided.auxiliary["guided_alignment"] * batch.target_tokens
    assert extra > 0 and guided.tokens == plain.tokens
    assert guided.total.item() == pytest.approx(plain.total.item() + 0.5 * extra, abs=1e-4)
    gradients = torch.autograd.grad(guided.total - plain.total, list(model.parameters()), allow_unused=True)
    named = dict(zip([name for name, _ in model.named_parameters()], gradients, strict=True))
    reached = {name for name, each in named.items() if each is not None and each.abs().max() > 1e-6}
    assert any(name.startswith("decoder.layers.1.cross_attention.query") for name in reached)
    assert any(name.startswith("encoder.") for name in reached)
    assert not any(name.startswith("decoder.layers.2") for name in reached)
    with pytest.raises(ConfigError, match="has heads 1 to"):
        GuidedAlignment(CrossEntropy(), LINKS, GuidedAlignmentConfig(head=99))(model, batch)


def test_all_tokens_of_linked_words_are_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizers = tiny_tokenizers()
    texts = [("a dog runs", "ein Hund läuft"), (" two  men", "zwei"), ("a dog", "ein Hund")]
    rows = [(tokenizers.source.encode(source), tokenizers.target.encode(target)) for source, target in texts]
    alignments = [((0, 0), (2, 1)), ((1, 0),), ()]
    monkeypatch.setattr(WordAligner, "train", lambda *_: (None, AlignedPairs(alignments, np.zeros(3), np.zeros(3))))
    prepared: Any = SimpleNamespace(dataset=[tuple(map(np.array, row)) for row in rows], tokenizers=tokenizers)
    links = token_links(prepared, AlignerConfig())
    words = [
        [word_indices(side, text) for side, text in zip((tokenizers.source, tokenizers.target), pair, strict=True)]
        for pair in texts
    ]
    source, target = words[0]
    expected = {(i, j) for i, s in enumerate(source) for j, t in enumerate(target) if (s, t) in alignments[0]}
    first = slice(links.starts[0], links.starts[1])
    assert set(zip(links.source[first].tolist(), links.target[first].tolist(), strict=True)) == expected
    assert len(expected) > 2 and links.starts[3] == links.starts[2]


def test_incompatible_settings() -> None:
    data = {"train": {"pairs": "a"}, "valid": {"pairs": "b"}}
    train = {"objective": {"kind": "guided_alignment"}, "compile": True}
    with pytest.raises(ValueError, match="needs attention weights"):
        TranslationRun.model_validate({"data": data, "out": "x", "train": train})


@pytest.mark.slow
def test_a_toy_learns_the_links_of_reversed_texts(tmp_path: Path) -> None:
    """The supervised head aligns better than the mean of all heads of a model without supervision."""
    chance = random.Random(1)
    for part, count in (("train", 600), ("valid", 60)):
        texts = [chance.sample("abcdefghijklmnop", chance.randint(3, 8)) for _ in range(count)]
        (tmp_path / f"{part}.tsv").write_text(
            "".join(f"{' '.join(text)}\t{' '.join(text[::-1]).upper()}\n" for text in texts)
        )
    data = {part: {"pairs": str(tmp_path / f"{part}.tsv")} for part in ("train", "valid")}
    stacks = {side: {"layers": 2, "heads": 4, "feedforward": 128} for side in ("encoder", "decoder")}
    text = {"subword": {"kind": "word"}, "shared": False}
    shares = []
    for kind in ("cross_entropy", "guided_alignment"):
        folder = train_toy(tmp_path / kind, data, text, stacks, 300, objective={"kind": kind})
        translator = dragoman.Translator.load(folder, "cpu", engine="torch")
        lines = [line.split("\t") for line in (tmp_path / "valid.tsv").read_text().splitlines()]
        sources, targets = ([line[side] for line in lines] for side in (0, 1))
        right = total = 0
        for source, links in zip(sources, translator.align(sources, targets), strict=True):
            length = len(source.split())
            right += len(set(links) & {(length - 1 - target, target) for target in range(length)})
            total += length
        shares.append(right / total)
    assert translator.supervised_attention == AttentionChoice(None, 1, "input")
    assert shares[1] > 0.9 and shares[1] > shares[0] + 0.2
