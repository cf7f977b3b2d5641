"""Measurement of deck 001's four criteria for position schemes, and the data of the deck's pictures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError
from dragoman.nn.positions.absolute import Added, Concatenated, Encoding
from dragoman.nn.positions.scheme import PositionScheme, RelativePositions

CRITERIA = ("unique", "deterministic", "evenly spaced", "longer texts")
_TOLERANCE = 1e-4
"""Tolerance relative to the largest value, far above the rounding errors of float32."""


@dataclass(frozen=True)
class Verdict:
    """The result for one criterion.

    holds: whether the criterion holds. counterexample: the reason if the criterion does not hold.
    """

    holds: bool
    counterexample: str = ""

    def __str__(self) -> str:
        return "yes" if self.holds else f"no: {self.counterexample}"


@dataclass(frozen=True)
class Setting:
    """The model and the text length for which schemes are compared.

    width: model width d. heads: number of heads of bidirectional self-attention. length: text length in tokens; the
    criterion "longer texts" uses ten times this length.
    """

    width: int = 128
    heads: int = 8
    length: int = 100


class Probe:
    """Measures the information about key positions that a scheme provides to a query."""

    def __init__(self, scheme: PositionScheme, setting: Setting, seed: int = 0) -> None:
        """Build the scheme with initial values from `seed`. Raises ConfigError if it is incompatible with `setting`."""
        self.width = setting.width // setting.heads
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            positions = scheme.build_embedding(setting.width)
            self.relation: RelativePositions | None = scheme.build_relative(
                setting.heads, self.width, self.width, self.width
            )
            torch.manual_seed(0)
            self.queries = torch.randn(1, 2 * setting.heads, 1, self.width)
            # half of the keys equal the queries, so that their scores are largest at distance 0 under any rotation
            random_keys = torch.randn(1, setting.heads, 1, self.width)
            self.keys = torch.cat((self.queries[:, : setting.heads], random_keys), 1)
        self.heads = setting.heads
        self.limit = positions.limit
        self.encoding: Encoding | None = None
        if isinstance(positions, Added | Concatenated):
            self.encoding = positions.encoding

    @torch.no_grad()
    def vectors(self, length: int) -> Tensor:
        """Return the features (length, features) that distinguish positions for a query in the middle of a text."""
        if self.encoding is not None:
            vectors: Tensor = self.encoding(0, length, None)
            return vectors.detach().reshape(length, -1)
        return self._features(length // 2, torch.arange(length))

    @torch.no_grad()
    def steps(self, length: int) -> Tensor:
        """Return the distance (length − 1,) between each position and the next position."""
        if self.encoding is not None:
            differences = self.vectors(length).diff(dim=0)
            return differences.square().sum(1).sqrt()
        features = [self._features(position, torch.tensor([position, position + 1])) for position in range(length - 1)]
        return torch.stack(features).flatten(1).square().sum(1).sqrt()

    @torch.no_grad()
    def pairs(self, length: int) -> Tensor:
        """Return values (1 or heads, length, length) for all pairs of positions.

        The values are dot products of the encodings. For a scheme inside attention, they are attention weights over
        identical tokens, relative to the maximum of each row. Only one matrix is returned if all heads are equal.
        """
        if self.encoding is not None:
            vectors = self.vectors(length)
            return (vectors @ vectors.t())[None]
        # all components are 1, so the scaled dot product is √d_k
        tokens = torch.ones(1, self.heads, length, self.width)
        positions = torch.arange(length)
        scores = self._scores(tokens, tokens, 0, 0, positions - positions[:, None])[0]
        weights = (scores - scores.amax(-1, keepdim=True)).exp()
        return weights[:1] if torch.allclose(weights, weights[:1].expand_as(weights)) else weights

    def _features(self, position: int, keys: Tensor) -> Tensor:
        """Return scores and values (len(keys), features) for a query at `position`.

        keys: consecutive key positions.
        """
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
            one_hot = torch.eye(count).expand(1, 1, count, count)
            values = self.relation.value_bias(one_hot, offsets.expand(count, count))
            features = torch.cat((features, values[0, 0]), 1)
        return features

    def _scores(self, queries: Tensor, keys: Tensor, position: int, start: int, offsets: Tensor) -> Tensor:
        """Return the scores (1, heads, T, S). position, start: positions of the first query and of the first key."""
        assert self.relation is not None
        scores: Tensor = self.relation.rotate(queries, position) @ self.relation.rotate(keys, start).transpose(-2, -1)
        scores = scores * self.width**-0.5
        return scores + self.relation.score_bias(queries, offsets) if self.relation.acts_on_scores else scores


def judge(scheme: PositionScheme, setting: Setting) -> dict[str, Verdict]:
    """Return the verdicts on deck 001's criteria, in the order of `CRITERIA`.

    unique: no two positions of a text have equal features. deterministic: the features do not depend on the seed, so
    the scheme is a formula without learned parameters. evenly spaced: all neighbouring positions are equally far apart,
    also in a text of half the length. longer texts: a text of ten times the length has positions too, and no feature
    is larger than for the given length. Schemes inside attention are evaluated by the scores and values of one query
    and all keys. Raises ConfigError if the scheme is incompatible with the setting.
    """
    probe = Probe(scheme, setting)
    length = min(setting.length, probe.limit or setting.length)
    vectors = probe.vectors(length)
    other_vectors = Probe(scheme, setting, seed=1).vectors(length)
    largest = max(float(vectors.abs().max()), 1e-30)
    return dict(
        zip(
            CRITERIA,
            (
                _unique(vectors, largest),
                Verdict(torch.allclose(vectors, other_vectors, atol=_TOLERANCE * largest), "depends on the seed"),
                _even(probe.steps(length), probe.steps(max(2, length // 2))),
                _longer(probe, length),
            ),
            strict=True,
        )
    )


def first_rise(products: Tensor) -> int | None:
    """Return the smallest distance at which the dot product with position 0 is larger than at the preceding distance.

    products: matrix (n, n) from `Probe.pairs`. Returns None if the products decrease throughout.
    """
    rises = (products[0].diff() > 0).nonzero()
    return int(rises[0]) + 1 if len(rises) else None


def criteria_table(schemes: Mapping[str, PositionScheme], setting: Setting) -> str:
    """Return a table with one line per scheme and one column per criterion.

    Lines of schemes that are incompatible with the setting contain dashes.
    """
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
    equal_pairs = (distances <= _TOLERANCE * largest).nonzero()
    if not len(equal_pairs):
        return Verdict(True)
    return Verdict(False, "{} and {} are equal".format(*equal_pairs[0].tolist()))


def _even(*steps: Tensor) -> Verdict:
    all_steps = torch.cat(steps)
    smallest, largest = float(all_steps.min()), float(all_steps.max())
    return Verdict(largest - smallest <= 10 * _TOLERANCE * largest, f"{smallest:.3g} to {largest:.3g}")


def _longer(probe: Probe, length: int) -> Verdict:
    if probe.limit is not None:
        return Verdict(False, f"ends at {probe.limit}")
    # scores of distant keys may decrease without bound, because the attention weights then approach 0
    magnitude = torch.abs if probe.encoding is not None else torch.clone
    short, long = (float(magnitude(probe.vectors(each)).max()) for each in (length, 10 * length))
    return Verdict(long <= short * (1 + 100 * _TOLERANCE), f"{short:.3g} grows to {long:.3g}")
