"""The best trees of a batch of sentences: by a search with a decoder, and by CKY with a chart."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.length_penalty import NoPenalty
from dragoman.decode.rules.rule import Rule
from dragoman.decode.rules.trees import TreeRestriction
from dragoman.decode.search import SearchConfig, search
from dragoman.inference.prediction.heads.inputs import ModelInput
from dragoman.inference.prediction.heads.parsing import ChartTree, allowed_tags, words_of
from dragoman.models.heads.chart import ChartOutput
from dragoman.models.heads.tree_decoder import TreeDecoderOutput
from dragoman.models.interface import Memory
from dragoman.native.chart import best_spans, span_indices

_SYMBOLS_PER_WORD, _MARGIN = 4, 20
"""Maximum number of symbols of a tree: these per word, plus a margin. The trees of the Penn Treebank and of CRAFT have
at most 3 per word, plus 18."""

_SENTENCES = 64
"""Number of sentences that are searched at once."""
_SPANS = 1 << 14
"""Number of spans that are scored at once."""


def generate_trees(
    output: TreeDecoderOutput, inputs: Sequence[ModelInput], prefixes: Sequence[Sequence[int]] | None = None
) -> list[tuple[tuple[int, ...], float]]:
    """Return the ids of the best tree of each sentence, without EOS, and their log-probability.

    prefixes: the ids with which each tree begins; None for no prefixes.
    """
    found: list[tuple[tuple[int, ...], float]] = []
    for start in range(0, len(inputs), _SENTENCES):
        rows = slice(start, start + _SENTENCES)
        memory = Memory(output.memory.states[rows], output.memory.mask[rows], _part(output.memory.final, rows))
        begun = None if prefixes is None else prefixes[rows]
        found += _search(TreeDecoderOutput(memory, output.head), inputs[rows], begun)
    return found


def _part(values: Tensor | None, rows: slice) -> Tensor | None:
    return None if values is None else values[rows]


def _search(
    output: TreeDecoderOutput, inputs: Sequence[ModelInput], prefixes: Sequence[Sequence[int]] | None
) -> list[tuple[tuple[int, ...], float]]:
    config, symbols = output.head.config, output.head.symbols
    device = output.memory.states.device
    lengths = [len(each.places) for each in inputs]
    limits = [_SYMBOLS_PER_WORD * length + _MARGIN for length in lengths]
    configs = [
        SearchConfig(beam=config.beam, length_factor=0, length_margin=limit, length_penalty=NoPenalty())
        for limit in limits
    ]
    places = np.zeros((len(inputs), max(lengths) + 1), np.int64)
    for row, each in enumerate(inputs):
        places[row, : len(each.places)] = each.places
        places[row, len(each.places) :] = len(each.ids) - 1
    decoder = output.aligned(torch.from_numpy(places).to(device))
    prompts = Prompts.of(decoder, output.memory, configs, prefixes)
    rules: list[Rule] = []
    if config.constrained:
        allowed = np.ones((len(inputs), max(lengths), len(symbols.words)), np.bool_)
        if symbols.tags is not None:
            for row, each in enumerate(inputs):
                words = words_of([each])
                allowed[row, : len(words)] = allowed_tags(words, symbols.tags, config.punctuation or {})
        rules.append(
            TreeRestriction(
                symbols,
                lengths,
                torch.from_numpy(allowed),
                limits=prompts.limits.tolist(),
                openings=config.openings,
                device=device,
            )
        )
    hypotheses = search(decoder, prompts, configs, rules)
    return [(best[0].tokens, best[0].log_probability) for best in hypotheses]


def chart_trees(output: ChartOutput, inputs: Sequence[ModelInput]) -> list[ChartTree]:
    """Return the best tree of each sentence in the chart of its spans."""
    trees = []
    for row, each in enumerate(inputs):
        positions = torch.tensor([*each.places, len(each.ids) - 1], device=output.states.device)
        scores = score_spans(output, output.fenceposts(row, positions))
        spans, total = best_spans(scores, len(each.places))
        tags = output.tags(torch.full_like(positions[:-1], row), positions[:-1])
        trees.append(ChartTree(spans, tags.detach().cpu().numpy(), total))
    return trees


@torch.no_grad()
def score_spans(output: ChartOutput, fenceposts: Tensor) -> np.ndarray:
    """Return the scores (spans, 1 + labels) of all spans of a sentence, with the score 0 of no label first.

    fenceposts: (n + 1, h) of the sentence.
    """
    starts, ends = (torch.from_numpy(each) for each in span_indices(len(fenceposts) - 1))
    scores = np.zeros((len(starts), 1 + len(output.head.config.known_labels)), np.float32)
    for first in range(0, len(starts), _SPANS):
        rows = slice(first, first + _SPANS)
        part = output.spans(fenceposts, starts[rows].to(fenceposts.device), ends[rows].to(fenceposts.device))
        scores[rows, 1:] = part.float().cpu().numpy()
    return scores
