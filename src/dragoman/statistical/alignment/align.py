"""`align` aligns the words of a parallel text, and trains, saves or loads an aligner."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.base.companion import atomic_companion
from dragoman.base.errors import ConfigError, reject_options
from dragoman.base.files import check_new_folder
from dragoman.base.log import info, quietly
from dragoman.base.settings.load import Override, Overrides, all_overrides, load_settings
from dragoman.checkpoint.folder import check_serves
from dragoman.data.corpora.inputs import Lines, read_parallel
from dragoman.statistical.alignment.links import Alignment, format_pharaoh, reversed_alignment
from dragoman.statistical.alignment.pair_scoring import score_pairs
from dragoman.statistical.alignment.symmetrization import heuristic_of
from dragoman.statistical.alignment.word_aligner import AlignerConfig, WordAligner

_TRAINED = "with an aligner that `dragoman align --save` has written"
_BATCH = 64
"""Number of sentence pairs that a translation model aligns at once."""
_WINDOW = 10_000
"""Number of lines that are formatted and written together."""


@dataclass(frozen=True)
class AlignedText:
    """The alignments of a parallel text.

    alignments: one per pair. log_probabilities: log p(target | source) + log p(source | target) of each pair, in nats.
    scores: see `score_pairs`. aligner: the aligner, which can align further texts. A model of another kind, which only
    aligns, has neither log-probabilities nor scores.
    """

    alignments: list[Alignment]
    log_probabilities: list[float]
    scores: list[float]
    aligner: Any

    def pharaoh(self) -> str:
        """Return the alignments in the Pharaoh format, one line per pair."""
        return "".join(f"{format_pharaoh(each)}\n" for each in self.alignments)


def align(
    source: Lines,
    target: Lines,
    output: str | Path | None = None,
    *,
    model: str | Path | None = None,
    save: str | Path | None = None,
    method: str | None = None,
    symmetrization: str | None = None,
    reverse: bool = False,
    scores: str | Path | None = None,
    draw: str | Path | None = None,
    draw_line: int = 1,
    overrides: Overrides = (),
    threads: int | None = None,
    quiet: bool = False,
) -> AlignedText:
    """Align the words of a parallel text, as `dragoman align` does.

    source, target: a file (plain or compressed) or a list of texts; text n of one corresponds to text n of the other.
    Words are separated by whitespace. output: a file for the alignments in the Pharaoh format, which is compressed
    according to its suffix and appears only once it is complete. model: the folder of a trained aligner, or of a
    model of another kind that aligns words, such as a translation model; None trains an
    aligner on the text itself. save: a new folder for the trained aligner. method: the kind of `aligner.method`.
    symmetrization: the heuristic that combines both directions, one of `Symmetrization`. reverse: the links have the
    order (target word, source word). scores: a file for one score per line (see `score_pairs`). draw: a PNG or SVG file
    for a picture of the alignments of pair number `draw_line`, from 1. overrides: settings of `AlignerConfig` by dotted
    key. threads: None for one per core; the results do not depend on it.

    Raises ConfigError for incompatible arguments and invalid settings, DataError for unequal numbers of texts,
    ModelError if `model` is not an aligner, and ResourceError if memory runs out or a file cannot be written.

    >>> from dragoman import align
    >>> aligned = align(["the dog", "the cat", "a dog"], ["der Hund", "die Katze", "ein Hund"])
    >>> aligned.pharaoh().splitlines()[2]
    '0-0 1-1'
    """
    given = all_overrides(overrides)
    if model is not None and (save is not None or method is not None or given):
        raise ConfigError(
            "--model is already trained: remove --save, --method and the settings, or train an aligner without --model"
        )
    if symmetrization is not None:
        heuristic_of(symmetrization)
        given = all_overrides(given, {"symmetrization": symmetrization}) if model is None else given
    if method is not None:
        given = all_overrides([Override(("method", "kind"), method, "from --method")], given)
    config = load_settings({}, given, AlignerConfig)
    if save is not None:
        check_new_folder(Path(save))
    with quietly(quiet):
        sources, targets = read_parallel(("source", source), ("target", target))
        aligner: Any
        log_probabilities: list[float] = []
        pair_scores: list[float] = []
        if model is not None and not hasattr(aligner := _load(Path(model)), "align_pairs"):
            reject_options({"--symmetrize": symmetrization, "--scores": scores, "--draw": draw}, _TRAINED)
            alignments = aligner.align(sources, targets, _BATCH)
        else:
            if model is None:
                aligner, aligned = WordAligner.train(sources, targets, config, threads)
                if save is not None:
                    aligner.save(save)
                    info(f"The aligner is in {save}")
            else:
                aligned = aligner.align_pairs(sources, targets, symmetrization, threads)
            alignments = aligned.alignments
            log_probabilities = (aligned.forward + aligned.reverse).tolist()
            pair_scores = score_pairs(sources, targets, aligned)
        alignments = [reversed_alignment(each) for each in alignments] if reverse else alignments
        result = AlignedText(alignments, log_probabilities, pair_scores, aligner)
        if draw is not None:
            pair = _pair_to_draw(sources, targets, draw_line)
            _draw(aligner, *pair, symmetrization or aligner.config.symmetrization, Path(draw))
        if output is not None:
            _write(alignments, Path(output))
        if scores is not None:
            with atomic_companion(Path(scores)) as file:
                file.write("".join(f"{score:.4f}\n" for score in pair_scores))
    return result


def _load(folder: Path) -> Any:
    """Return the object of a model folder that aligns words. Raises ModelError for another kind of model."""
    return check_serves(folder, "align").load(folder)


def _pair_to_draw(sources: Sequence[str], targets: Sequence[str], line: int) -> tuple[str, str]:
    """Return a pair. Raises ConfigError if it does not exist or if one of its sides is blank."""
    if not 1 <= line <= len(sources):
        raise ConfigError(f"--draw-line {line}: the text has only {len(sources):,} lines")
    pair = sources[line - 1], targets[line - 1]
    if not all(text.split() for text in pair):
        raise ConfigError(f"--draw-line {line}: one side of this line is blank, so choose another line")
    return pair


def _draw(aligner: WordAligner, source: str, target: str, symmetrization: str, file: Path) -> None:
    from dragoman.figures.alignments import alignment_figure

    heuristics = {"forward": "source → target", "reverse": "target → source"}
    heuristics.setdefault(symmetrization, symmetrization)
    aligners = {
        heading: aligner.align_pairs([source], [target], heuristic).alignments[0]
        for heuristic, heading in heuristics.items()
    }
    alignment_figure(source.split(), target.split(), aligners).write(file)


def _write(alignments: Sequence[Alignment], path: Path) -> None:
    with atomic_companion(path) as file:
        for start in range(0, len(alignments), _WINDOW):
            file.write("".join(f"{format_pharaoh(each)}\n" for each in alignments[start : start + _WINDOW]))
