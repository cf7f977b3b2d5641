"""`ExactSearch`: improves the result of a beam search until no other output can have a higher score."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.base.cancellation import check_cancelled
from dragoman.decode.beam.beam_search import BeamSearch
from dragoman.decode.beam.hypotheses import CompleteHypothesis, LinkedHypothesis, LiveHypotheses, StepTrace
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.rule import Endings, Rule, Step
from dragoman.models.interface import Decoder
from dragoman.text.symbols import EOS

BLOCK = 32
"""Number of prefixes that are expanded together."""

_NO_LINK = -1


class ExactSearch(BeamSearch):
    """Exact search by branch and bound (Stahlberg and Byrne 2019, section 3).

    A beam search finds the first outputs. Then all prefixes of outputs are searched depth first, the most probable
    first. A prefix is left out if no output that begins with it can have a higher score than the last of the best
    outputs so far; log-probabilities are never positive, so that the rules know an upper bound. What remains at the end
    are the finished outputs with the highest scores, also compared with those that the beam would prune.
    """

    def __init__(
        self,
        decoder: Decoder,
        prompts: Prompts,
        beam: int,
        nbest: Sequence[int],
        rules: Sequence[Rule],
        *,
        keeps_totals: bool = False,
        observer: Callable[[StepTrace], None] | None = None,
        expansions: Sequence[int],
    ) -> None:
        """expansions: maximum number of prefixes to expand after the beam search, for each sentence; 0 for none.

        Other arguments as in `BeamSearch`, which they describe.
        """
        super().__init__(decoder, prompts, beam, nbest, rules, keeps_totals=keeps_totals, observer=observer)
        self._expansions = expansions

    @torch.no_grad()
    def run(self) -> list[list[CompleteHypothesis]]:
        """Run both searches, and set `bounds`."""
        results = super().run()
        for sentence, count in enumerate(self._expansions):
            if count:
                best = BestOutputs(self._lists[sentence][0].size, results[sentence])
                self.bounds[sentence] = self._improve(sentence, best, count)
                results[sentence] = best.outputs
        return results

    def start(self) -> LiveHypotheses:
        """Return the initial hypotheses, of which copies are kept."""
        live = super().start()
        self._roots = [_select(live, [row], sentence) for row, sentence in enumerate(live.sentences.tolist())]
        return live

    def _improve(self, sentence: int, best: "BestOutputs", count: int) -> float:
        """Improve the outputs of a sentence by expanding at most `count` prefixes.

        Returns an upper bound on the scores of all finished outputs that are not among the best.
        """
        root = self._roots[sentence]
        prefixes = _Prefixes(root, root.tokens[:, :0], root.log_probabilities[:, :0])
        pending: list[_Continuations] = []
        while True:
            check_cancelled()
            count -= len(prefixes.tokens)
            pending.append(self._expand(prefixes, best, max(count, 1)))
            pending = [each for each in pending if each.bound > best.threshold]
            if not pending or not count:
                return max([best.threshold, *(each.bound for each in pending)])
            first, rest = pending[-1].divide(min(BLOCK, count), best.threshold)
            pending[-1:] = [rest]
            prefixes = first.as_prefixes()

    def _expand(self, prefixes: "_Prefixes", best: "BestOutputs", count: int) -> "_Continuations":
        """Add the outputs that end after R prefixes to the best ones, and return the `count` best longer prefixes."""
        live, (sentence,) = prefixes.live, prefixes.live.sentences.tolist()
        output, state = self.decoder.step(live.tokens, live.state)
        length = int(self.prompts.prefix_lengths[sentence]) + prefixes.tokens.size(1) + 1
        step = Step(live.sentences, np.array([length]), live.tokens, output)
        live = replace(live, state=state, rule_states=live.rule_states.read(step))
        logits = output.last_logits().float()  # (R, V)
        normaliser = logits.logsumexp(1, keepdim=True)  # (R, 1)
        sums = live.log_probabilities.view(-1, 1) + (logits - normaliser)  # (R, V)
        weighed = live.rule_states.add(logits, step)  # (R, V)
        live.rule_states.restrict(weighed, step)
        totals = live.totals.view(-1, 1) + (weighed - normaliser)  # (R, V)
        ended = (totals[:, EOS] > -torch.inf).nonzero().squeeze(1)  # (N,)
        endings = Endings(np.full(len(ended), sentence), np.full(len(ended), length), True)
        scores = live.rule_states.scores(_host(totals[ended, EOS]), ended, endings)
        for row, total, score in zip(ended.tolist(), sums[ended, EOS].tolist(), scores.tolist(), strict=True):
            best.add(prefixes.output(row, total, score))
        totals[:, EOS] = -torch.inf
        if length == self.prompts.limits[sentence]:
            totals.fill_(-torch.inf)
        bounds = live.rule_states.bounds(_host(totals.flatten()), np.full(totals.numel(), sentence))
        order = np.flatnonzero(bounds > best.threshold)
        order = order[np.argsort(-bounds[order], kind="stable")[:count]]
        chosen = torch.from_numpy(order).to(totals.device)
        rows, tokens = chosen // totals.size(1), chosen % totals.size(1)
        return _Continuations(
            prefixes._replace(live=live), rows, tokens, totals[rows, tokens], sums[rows, tokens], bounds[order]
        )


@dataclass
class BestOutputs:
    """The best finished outputs of a sentence, best first: at most `size`; unfinished ones if none is finished."""

    size: int
    outputs: list[CompleteHypothesis]

    @property
    def threshold(self) -> float:
        """The score that another output must exceed."""
        finished = [each.end.score for each in self.outputs if each.end.finished]
        return finished[-1] if len(finished) == self.size else -np.inf

    def add(self, output: CompleteHypothesis) -> None:
        """Add a finished output, unless it is already known or worse than all others."""
        if output.end.score <= self.threshold or any(
            each.tokens == output.tokens and each.end.finished for each in self.outputs
        ):
            return
        ordered = sorted([*self.outputs, output], key=lambda each: (not each.end.finished, -each.end.score))
        self.outputs = ordered[: self.size]


class _Prefixes(NamedTuple):
    """R prefixes of outputs of one sentence, before their last token is read by the decoder.

    live: the prefixes as hypotheses, without links. tokens, totals: (R, T), the tokens after the prompt and the summed
    log-probabilities up to each of them.
    """

    live: LiveHypotheses
    tokens: Tensor
    totals: Tensor

    def output(self, row: int, log_probability: float, score: float) -> CompleteHypothesis:
        """Return the output that ends after a prefix."""
        tokens = tuple(self.tokens[row].tolist())
        end = LinkedHypothesis(log_probability, score, True, len(tokens), _NO_LINK)
        return CompleteHypothesis(end, tokens, tuple(self.totals[row].tolist()))


class _Continuations(NamedTuple):
    """N continuations of prefixes by one token, by descending bound, each (N,).

    prefixes: with the states of the decoder after the prefixes. rows: their numbers. bounds: upper bounds on the scores
    of the outputs that begin with the continuations. Others as in `LiveHypotheses`.
    """

    prefixes: _Prefixes
    rows: Tensor
    tokens: Tensor
    totals: Tensor
    log_probabilities: Tensor
    bounds: NDArray[np.float64]

    @property
    def bound(self) -> float:
        """The highest bound; −∞ if there is no continuation."""
        return float(self.bounds.max(initial=-np.inf))

    def divide(self, count: int, threshold: float) -> tuple["_Continuations", "_Continuations"]:
        """Return the first `count` continuations and the others, without those whose bounds are at most `threshold`."""
        promising = int((self.bounds > threshold).sum())
        return self._part(0, min(count, promising)), self._part(count, promising)

    def _part(self, begin: int, end: int) -> "_Continuations":
        tensors = self.rows, self.tokens, self.totals, self.log_probabilities
        rows, tokens, totals, log_probabilities = (each[begin:end] for each in tensors)
        return _Continuations(self.prefixes, rows, tokens, totals, log_probabilities, self.bounds[begin:end])

    def as_prefixes(self) -> _Prefixes:
        """Return the continuations as prefixes, with copies of the decoder's states."""
        live, tokens, totals = self.prefixes
        chosen = _select(live, self.rows, int(live.sentences[0]))
        live = replace(
            chosen,
            tokens=self.tokens.unsqueeze(1),
            totals=self.totals.unsqueeze(0),
            log_probabilities=self.log_probabilities.unsqueeze(0),
        )
        return _Prefixes(
            live,
            torch.cat([tokens[self.rows], self.tokens.unsqueeze(1)], 1),
            torch.cat([totals[self.rows], self.log_probabilities.unsqueeze(1)], 1),
        )


def _select(live: LiveHypotheses, rows: Tensor | Sequence[int], sentence: int) -> LiveHypotheses:
    """Return copies of hypotheses of one sentence. rows: their numbers among all hypotheses."""
    rows = torch.as_tensor(rows, device=live.tokens.device)
    return LiveHypotheses(
        np.array([sentence]),
        live.state.reorder(rows, len(rows)),
        live.tokens[rows],
        live.totals.flatten()[rows].unsqueeze(0),
        live.log_probabilities.flatten()[rows].unsqueeze(0),
        rows,
        live.rule_states.reorder(rows, len(rows)),
    )


def _host(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.cpu().numpy()
    return array
