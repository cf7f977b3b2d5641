"""Deck 001's four criteria for position schemes, measured, and the numbers behind its pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.absolute import Added, Concatenated, Encoding
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions

CRITERIA = ("unique", "deterministic", "evenly spaced", "longer texts")
_SAME = 1e-4
"""Tolerance relative to the largest value, far above the rounding errors of float32."""


@dataclass(frozen=True)
class Verdict:
    """Whether a criterion holds, with a counterexample if it does not."""

    holds: bool
    found: str = ""

    def __str__(self) -> str:
        return "yes" if self.holds else f"no: {self.found}"


@dataclass(frozen=True)
class Setting:
    """The model in which schemes are compared: its width d and the number of heads of its bidirectional self-attention.

    length: length of the text in tokens; the criterion "longer texts" uses ten times this length.
    """

    width: int = 128
    heads: int = 8
    length: int = 100


class Probe:
    """A scheme built from a seed, as one query sees the positions of all keys."""

    def __init__(self, scheme: PositionScheme, setting: Setting, seed: int = 0) -> None:
        """Raises ConfigError for a scheme that does not fit the setting."""
        self.width = setting.width // setting.heads
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            positions = scheme.build_embedding(setting.width)
            self.relation: RelativePositions | None = scheme.build_relative(
                setting.heads, self.width, self.width, self.width
            )
            torch.manual_seed(0)
            self.queries = torch.randn(1, 2 * setting.heads, 1, self.width)
            # half of the keys equal the queries: no rotation makes them fit better than at distance 0
            other = torch.randn(1, setting.heads, 1, self.width)
            self.keys = torch.cat((self.queries[:, : setting.heads], other), 1)
        self.heads = setting.heads
        self.limit = positions.limit
        self.encoding: Encoding | None = None
        if isinstance(positions, Added | Concatenated):
            self.encoding = positions.encoding

    @torch.no_grad()
    def vectors(self, length: int) -> Tensor:
        """Return (length, features): what distinguishes the positions of a text for a query in its middle."""
        if self.encoding is not None:
            found: Tensor = self.encoding(0, length, None)
            return found.detach().reshape(length, -1)
        return self._seen(length // 2, torch.arange(length))

    @torch.no_grad()
    def steps(self, length: int) -> Tensor:
        """Return (length − 1,): the distance between each position and the next."""
        if self.encoding is not None:
            moved = self.vectors(length).diff(dim=0)
            return moved.square().sum(1).sqrt()
        seen = [self._seen(position, torch.tensor([position, position + 1])) for position in range(length - 1)]
        return torch.stack(seen).flatten(1).square().sum(1).sqrt()

    @torch.no_grad()
    def pairs(self, length: int) -> Tensor:
        """Return (1 or heads, length, length) values of all pairs of positions.

        These are dot products of the encodings or, for a scheme inside attention, weights over identical tokens
        relative to the largest of each row. There is one matrix if all heads agree.
        """
        if self.encoding is not None:
            vectors = self.vectors(length)
            return (vectors @ vectors.t())[None]
        # all components are 1, so the scaled dot product is √d_k
        same = torch.ones(1, self.heads, length, self.width)
        positions = torch.arange(length)
        scores = self._scores(same, same, 0, 0, positions - positions[:, None])[0]
        found = (scores - scores.amax(-1, keepdim=True)).exp()
        return found[:1] if torch.allclose(found, found[:1].expand_as(found)) else found

    def _seen(self, position: int, keys: Tensor) -> Tensor:
        """Return scores and values (len(keys), features) of a query at `position` and keys at consecutive positions."""
        start, count = int(keys[0]), len(keys)
        features = torch.zeros(count, 1)
        if self.relation is None:
            return features
        offsets = (keys - position)[None]
        for half in (slice(None, self.heads), slice(self.heads, None)):
            copies = self.keys[:, half].expand(-1, -1, count, -1)
            scores = self._scores(self.queries[:, half], copies, position, start, offsets)
            features = torch.cat((features, scores[0, :, 0].t()), 1)
        if self.relation.acts_on_values:
            one_each = torch.eye(count).expand(1, 1, count, count)
            values = self.relation.value_bias(one_each, offsets.expand(count, count))
            features = torch.cat((features, values[0, 0]), 1)
        return features

    def _scores(self, queries: Tensor, keys: Tensor, position: int, start: int, offsets: Tensor) -> Tensor:
        """Return the scores (1, heads, T, S) of queries from position `position` on and keys from `start` on."""
        assert self.relation is not None
        scores: Tensor = self.relation.rotate(queries, position) @ self.relation.rotate(keys, start).transpose(-2, -1)
        scores = scores * self.width**-0.5
        return scores + self.relation.score_bias(queries, offsets) if self.relation.acts_on_scores else scores


def judge(scheme: PositionScheme, setting: Setting) -> dict[str, Verdict]:
    """Return the verdicts on deck 001's criteria, in the order of `CRITERIA`.

    unique: no two positions of a text look alike. deterministic: models initialised from different seeds agree, so the
    encoding is a formula and nothing is learned. evenly spaced: neighbouring positions are equally far apart, in this
    text and in one of half the length. longer texts: a text of ten times the length has positions too, and none
    of the values that the model reads is larger than before. Schemes inside attention are judged by what one query sees
    of all keys. Raises ConfigError for a scheme that does not fit the setting.
    """
    probe = Probe(scheme, setting)
    length = min(setting.length, probe.limit or setting.length)
    vectors = probe.vectors(length)
    again = Probe(scheme, setting, seed=1).vectors(length)
    largest = max(float(vectors.abs().max()), 1e-30)
    return dict(
        zip(
            CRITERIA,
            (
                _unique(vectors, largest),
                Verdict(torch.allclose(vectors, again, atol=_SAME * largest), "depends on the seed"),
                _even(probe.steps(length), probe.steps(max(2, length // 2))),
                _longer(probe, length),
            ),
            strict=True,
        )
    )


def first_rise(products: Tensor) -> int | None:
    """Return the first distance at which the dot product with position 0 is larger than at the previous distance.

    products: (n, n), as `Probe.pairs` returns them. Returns None if the products fall throughout.
    """
    rises = (products[0].diff() > 0).nonzero()
    return int(rises[0]) + 1 if len(rises) else None


def criteria_table(schemes: Mapping[str, PositionScheme], setting: Setting) -> str:
    """Return a table with one line per scheme and one column per criterion; dashes mark schemes that do not fit."""
    rows: list[tuple[Any, ...]] = [("positions", *CRITERIA)]
    for name, scheme in schemes.items():
        try:
            rows.append((name, *judge(scheme, setting).values()))
        except ConfigError:
            rows.append((name, *["–"] * len(CRITERIA)))
    widths = [max(len(str(row[column])) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def _unique(vectors: Tensor, largest: float) -> Verdict:
    distances = torch.cdist(vectors, vectors, compute_mode="donot_use_mm_for_euclid_dist")
    distances.fill_diagonal_(torch.inf)
    alike = (distances <= _SAME * largest).nonzero()
    return Verdict(not len(alike), "" if not len(alike) else "{} and {} are alike".format(*alike[0].tolist()))


def _even(*steps: Tensor) -> Verdict:
    every = torch.cat(steps)
    smallest, largest = float(every.min()), float(every.max())
    return Verdict(largest - smallest <= 10 * _SAME * largest, f"{smallest:.3g} to {largest:.3g}")


def _longer(probe: Probe, length: int) -> Verdict:
    if probe.limit is not None:
        return Verdict(False, f"ends at {probe.limit}")
    # the score of a distant key may decrease without bound: its weight approaches 0
    size = torch.abs if probe.encoding is not None else torch.clone
    short, long = (float(size(probe.vectors(each)).max()) for each in (length, 10 * length))
    return Verdict(long <= short * (1 + 100 * _SAME), f"{short:.3g} grows to {long:.3g}")
