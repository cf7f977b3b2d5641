"""`ParsingJob`, the job of a run that trains a parser, and its losses."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.data.batches.epoch import Part
from dragoman.data.batches.labelled import NO_LABEL, LabelledBatch
from dragoman.data.held_out.check import Finding
from dragoman.data.labelled.examples import ParsedSentence
from dragoman.data.labelled.read import read_parsed
from dragoman.inference.prediction.heads.parsing import span_labels
from dragoman.inference.prediction.heads.trees import score_spans
from dragoman.metrics.labels.brackets import COLLINS
from dragoman.models.heads.chart import ChartHeadConfig, ChartOutput
from dragoman.models.heads.tree_decoder import TreeDecoderHeadConfig, TreeDecoderOutput, teacher_inputs
from dragoman.native.chart import best_spans, span_indices
from dragoman.tasks.labelled.config import ParsingRun
from dragoman.tasks.labelled.job import LabelledJob
from dragoman.tasks.labelled.objective import HeadLoss, LabelObjective
from dragoman.tasks.labelled.rows import Row
from dragoman.text.symbols import BOS, PAD
from dragoman.text.trees.tree import Tree

_LEAST_SHARE = 0.1
"""Minimum fraction of the occurrences of a word with a tag, for words that may be punctuation."""


class ParsingJob(LabelledJob):
    """The job of a run that trains a parser."""

    run: ParsingRun
    train: Sequence[ParsedSentence]
    valid: Sequence[ParsedSentence]
    unit = "symbols"
    longest = None  # a longer sentence is an error
    new_head_rate = 2.0  # a decoder has layers of its own, which large updates disturb

    def read(self, run: ParsingRun) -> tuple[list[ParsedSentence], list[ParsedSentence]]:
        """Read the treebanks. See `LabelledJob.read`."""
        return read_parsed(run.data.train), [] if run.data.valid is None else read_parsed(run.data.valid)

    def texts(self, example: ParsedSentence) -> Sequence[str]:
        """Return the sentence, with spaces between the words."""
        return (" ".join(example.words),)

    def resolve_head(self, head: Any) -> TreeDecoderHeadConfig | ChartHeadConfig:
        """Return the settings with the labels and tags of the treebanks, and with the words that are punctuation."""
        trees = [example.tree for example in self.train if example.tree is not None]
        if isinstance(head, ChartHeadConfig):
            found = {each.label for tree in trees for each in span_labels(tree)}
        else:
            found = {each.label for tree in trees for each in tree.constituents}
        update = {
            "labels": head.labels or tuple(sorted(found)) or head.known_labels,
            "tags": head.tags or tuple(sorted({tag for tree in trees for tag in tree.tags})),
            "punctuation": find_punctuation(trees) if head.punctuation is None else head.punctuation,
        }
        resolved: TreeDecoderHeadConfig | ChartHeadConfig = head.model_copy(update=update)
        return resolved

    def symbols(self) -> Sequence[str]:
        """Return the tags of the treebanks."""
        return sorted({example.tag for example in self.train if example.tag})

    def parts(self) -> Sequence[Part]:
        """Return the number of sentences and the weight of each treebank."""
        sizes = Counter(example.part for example in self.train)
        weights = [corpus.weight for corpus in self.run.data.corpora]
        return [Part(sizes[number], weight) for number, weight in enumerate(weights)]

    def lengths_of(self, row: Row) -> tuple[int, ...]:
        """Return the number of tokens, and for a decoder the number of symbols of the tree."""
        inputs, target = row
        is_generated = isinstance(self.run.model.head, TreeDecoderHeadConfig)
        return (len(inputs.ids), len(target)) if is_generated else (len(inputs.ids),)

    def labels(self, example: ParsedSentence) -> Sequence[str]:
        """Return the labels of the constituents."""
        return [] if example.tree is None else [each.label for each in example.tree.constituents]

    def check_labels(self) -> Iterator[Finding]:
        """Yield the number of constituents and words whose labels and tags are not those of the model."""
        head: Any = self.resolve_head(self.run.model.head)
        is_chart = isinstance(head, ChartHeadConfig)
        labels, tags = {*head.known_labels}, {*head.known_tags}
        unknown = 0
        for tree in (example.tree for example in self.valid if example.tree is not None):
            unknown += sum(each.label not in labels for each in (span_labels(tree) if is_chart else tree.constituents))
            unknown += sum(tag not in tags for tag in tree.tags) if is_chart or head.tagged else 0
        if unknown:
            name = self.run.data.names("valid")
            yield Finding(f"{unknown:,} labels of {name} do not occur in the training data and count as wrong")

    def build_objective(self, rows: Sequence[Row]) -> LabelObjective:
        """Return the cross-entropy of the symbols, or the margin loss of the chart."""
        if isinstance(self.run.model.head, ChartHeadConfig):
            return LabelObjective(chart_loss)
        smoothing = self.run.train.objective.label_smoothing
        return LabelObjective(symbol_loss(), symbol_loss(smoothing) if smoothing else None)


def find_punctuation(trees: Sequence[Tree]) -> dict[str, tuple[str, ...]]:
    """Return the words that may be punctuation, with their tags, the most frequent first; see `TreeHead`."""
    counts: dict[str, Counter[str]] = {}
    for tree in trees:
        for tag, text in tree.words:
            counts.setdefault(text, Counter())[tag] += 1
    found = {}
    for text, tags in sorted(counts.items()):
        frequent = tuple(tag for tag, count in tags.most_common() if count >= _LEAST_SHARE * tags.total())
        if COLLINS.deleted & set(frequent):
            found[text] = frequent
    return found


def symbol_loss(smoothing: float = 0.0) -> HeadLoss:
    """Return the cross-entropy of the symbols of trees, summed over symbols.

    batch.labels: (B, T, 2), as from `TreeGenerator.target`, padded with NO_LABEL.
    """

    def loss(output: TreeDecoderOutput, batch: LabelledBatch) -> Tensor:
        symbols, positions = batch.labels.unbind(2)
        logits = output.logits(teacher_inputs(symbols, BOS, PAD), positions.clamp_min(0))
        return functional.cross_entropy(
            logits.flatten(0, 1),
            symbols.flatten(),
            ignore_index=NO_LABEL,
            reduction="sum",
            label_smoothing=smoothing,
        )

    return loss


def chart_loss(output: ChartOutput, batch: LabelledBatch) -> Tensor:
    """Return the margin loss of the trees plus the cross-entropy of the tags, summed over sentences.

    The margin loss of a sentence is max(0, max_T [s(T) + m·Δ(T, T*)] − s(T*)) for its correct tree T*, where Δ is the
    number of wrong labels of spans (Kitaev and Klein 2018, equations 2 and 3). The best tree T is found without
    gradients, and only its spans and those of T* are scored again.

    batch.labels: (B, N, 3), as from `ChartReader.target`, padded with NO_LABEL.
    """
    margin = output.head.config.margin
    fenceposts, starts, ends, labels, signs = [], [], [], [], []
    rows, places, tags = [], [], []
    first, violation = 0, 0.0
    for row, target in enumerate(batch.labels):
        target = target[target[:, 0] != NO_LABEL]
        words = int((target[:, 1] == 0).sum()) - 1
        positions, own_tags = target[: words + 1, 0], target[:words, 2]
        posts = output.fenceposts(row, positions)
        gold = torch.zeros(words, words + 1, dtype=torch.int32)
        known = target[words + 1 :][target[words + 1 :, 2] > 0].cpu()
        gold[known[:, 0], known[:, 1]] = known[:, 2].int()
        span_starts, span_ends = span_indices(words)
        correct = gold.numpy()[span_starts, span_ends]
        best, _ = best_spans(score_spans(output, posts.detach()), words, margin, correct)
        wrong = (best >= 0) & (best != correct)
        for chosen, sign in ((best, 1), (correct, -1)):
            of_tree = (chosen > 0) & (chosen != (correct if sign > 0 else best))
            starts += (first + span_starts[of_tree]).tolist()
            ends += (first + span_ends[of_tree]).tolist()
            labels += (chosen[of_tree] - 1).tolist()
            signs += [sign] * int(of_tree.sum())
        violation += margin * float(wrong.sum())
        fenceposts.append(posts)
        first += words + 1
        rows += [row] * words
        places.append(positions[:-1])
        tags.append(own_tags)
    device = output.states.device
    logits = output.tags(torch.tensor(rows, device=device), torch.cat(places))
    loss = functional.cross_entropy(logits, torch.cat(tags), ignore_index=NO_LABEL, reduction="sum")
    if labels:
        scores = output.spans(
            torch.cat(fenceposts), torch.tensor(starts, device=device), torch.tensor(ends, device=device)
        )
        chosen_scores = scores.gather(1, torch.tensor(labels, device=device).unsqueeze(1)).squeeze(1)
        loss = loss + (chosen_scores * torch.tensor(signs, device=device)).sum() + violation
    return loss
