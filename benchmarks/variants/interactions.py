"""Joint analysis of singles and pairs: main effects, and interactions of pairs of levels."""

from itertools import combinations

import numpy as np
from factors import meant
from runs import Line

SAMPLES, STRONGEST, FEWEST = 500, 20, 3
"""Numbers of bootstrap samples and permutations, of pairs shown, and of runs required to judge a pair."""


def pairs_report(lines: list[Line], refused: dict[str, str]) -> str:
    """Return the report in Markdown: families, main effects, interactions, refused pairs. lines: all finished runs."""
    text = ["# Encoder × decoder families\n", families(lines)]
    runs = [line for line in lines if line["group"] != "Multi30k"]
    own = sum(line["group"] == "pairs" for line in runs)
    if own > 2 * FEWEST:
        text += [f"# Main effects and interactions over {len(runs)} runs, {own} of them of pairs\n", effects(runs)]
    if refused:
        reasons: dict[str, list[str]] = {}
        for pair, why in refused.items():
            reasons.setdefault(why.replace("\n", " "), []).append(pair)
        text += [f"# {len(refused)} refused pairs\n"]
        text += [f"- {why}: {'; '.join(pairs)}\n" for why, pairs in sorted(reasons.items())]
    return "\n".join(text)


def families(lines: list[Line]) -> str:
    """Return BLEU of the single run with its interval, then the mean over the runs of the design, and their number."""
    single = {
        (line["effective"]["encoder"], line["effective"]["decoder"]): line
        for line in lines
        if line["factor"] in ("family", "centre") and line["group"] != "Multi30k"
    }
    design: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        if line["group"] == "pairs":
            design.setdefault((line["effective"]["encoder"], line["effective"]["decoder"]), []).append(line["bleu"])
    found = list(dict.fromkeys([*single, *design]))
    encoders, decoders = (list(dict.fromkeys(sides)) for sides in zip(*found, strict=True)) if found else ([], [])
    text = ["| encoder \\ decoder | " + " | ".join(decoders) + " |", "| --- |" + " --- |" * len(decoders)]
    for encoder in encoders:
        cells = []
        for decoder in decoders:
            one, more = single.get((encoder, decoder)), design.get((encoder, decoder), [])
            cell = [f"{one['bleu']:.1f} ({one['low']:.1f}–{one['high']:.1f})"] if one else []
            cells.append("; ".join(cell + ([f"design {np.mean(more):.1f} (n={len(more)})"] if more else [])))
        text.append(f"| {encoder} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def effects(runs: list[Line]) -> str:
    """Return main effects of an additive model, and the mean residuals of the runs with a pair of levels."""
    bleu = np.array([line["bleu"] for line in runs])
    levels, holds = _holds(runs)
    effect, predicted = _fit(holds, bleu)
    random = np.random.default_rng(1)
    draws = random.integers(0, len(runs), (SAMPLES, len(runs)))
    resampled = np.array([_fit(holds[draw], bleu[draw], fast=True)[0] for draw in draws])
    text = [
        "Effect: in a ridge regression of BLEU on all levels, relative to the mean of the runs; mean BLEU: of the "
        "runs with the level; 95% bootstrap intervals over runs.",
        f"The additive model explains {100 * (1 - np.var(bleu - predicted) / np.var(bleu)):.0f}% of the variance of "
        "held-out runs (leave-one-out).\n",
        "| factor | level | runs | mean BLEU | interval | effect | interval |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for place, (factor, level) in enumerate(levels):
        own = holds[:, place] > 0
        means = [bleu[draw][own[draw]].mean() for draw in draws if own[draw].any()]
        text.append(
            f"| {factor} | {level} | {own.sum()} | {bleu[own].mean():.1f} | {_interval(np.array(means))} | "
            f"{effect[place]:+.1f} | {_interval(resampled[:, place], '+')} |"
        )
    return "\n".join([*text, "", _interactions(levels, holds, bleu - predicted, random)])


def _interactions(
    levels: list[tuple[str, str]], holds: np.ndarray, residual: np.ndarray, random: np.random.Generator
) -> str:
    pairs = [
        (one, other)
        for one, other in combinations(range(len(levels)), 2)
        if levels[one][0] != levels[other][0] and FEWEST <= holds[:, one] @ holds[:, other] < len(holds) / 2
    ]
    together = np.array([holds[:, one] * holds[:, other] for one, other in pairs])
    if not len(together):
        return f"No pair of levels is in {FEWEST} runs.\n"
    counts = together.sum(1)
    residual = residual - residual.mean()

    def strength(values: np.ndarray) -> np.ndarray:
        """Return mean residuals of each pair, in units of their standard error."""
        return np.asarray(together @ values / np.sqrt(counts) / residual.std())

    observed = strength(residual)
    largest = np.array([np.abs(strength(random.permutation(residual))).max() for _ in range(SAMPLES)])
    text = [
        f"Interactions: the mean residual of BLEU, over the {FEWEST} or more runs with both levels, relative to the "
        f"additive model fitted without that run; ± its standard error. p: how often the strongest of all "
        f"{len(pairs)} pairs is as strong when the residuals are permuted over the runs ({SAMPLES} times). "
        "One seed a run.\n",
        "| levels | runs | interaction (BLEU) | p, over all pairs |",
        "| --- | --- | --- | --- |",
    ]
    for place in np.argsort(-np.abs(observed))[:STRONGEST]:
        one, other = (levels[each] for each in pairs[place])
        p = (1 + (largest >= abs(observed[place])).sum()) / (1 + SAMPLES)
        error = residual.std() / np.sqrt(counts[place])
        mean = together[place] @ residual / counts[place]
        text.append(
            f"| {'='.join(one)}, {'='.join(other)} | {counts[place]:.0f} | {mean:+.1f} ± {error:.1f} | {p:.3f} |"
        )
    return "\n".join(text) + "\n"


def _holds(runs: list[Line]) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Return the occurring levels, and an indicator matrix (runs, levels). null is replaced by its meaning."""
    held = [meant(line["effective"]) for line in runs]
    levels = sorted({each for own in held for each in own.items()})
    rows = [[float(own.get(factor) == level) for factor, level in levels] for own in held]
    return levels, np.array(rows)


def _fit(holds: np.ndarray, bleu: np.ndarray, fast: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return effects of all levels, and leave-one-out predictions of each run.

    Ridge regression, so that effects that the data cannot separate are shared. The strength is chosen by the
    leave-one-out error; fast: a fixed strength.
    """
    centred, mean = holds - holds.mean(0), bleu.mean()
    u, s, v = np.linalg.svd(centred, full_matrices=False)
    best = None
    for strength in (3.0,) if fast else (0.3, 1.0, 3.0, 10.0, 30.0):
        shrink = s**2 / (s**2 + strength)
        leverage = ((u**2) * shrink).sum(1) + 1 / len(bleu)
        error = (bleu - mean - u @ (shrink * (u.T @ (bleu - mean)))) / np.maximum(1 - leverage, 1e-6)
        if best is None or (error @ error) < best[0]:
            best = error @ error, v.T @ (s / (s**2 + strength) * (u.T @ (bleu - mean))), bleu - error
    assert best is not None
    return best[1], best[2]


def _interval(values: np.ndarray, sign: str = "") -> str:
    low, high = np.quantile(values, (0.025, 0.975))
    return f"{low:{sign}.1f} to {high:{sign}.1f}"
