"""`measure_precision_cost` measures what int8 costs a translation model, at the end of training or later."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from shlex import quote

from dragoman.base.errors import ConfigError, DataError, DragomanError
from dragoman.base.log import info, quietly, warn
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.folder import CONFIG, check_serves, read_config, read_meta
from dragoman.checkpoint.precision_cost import PrecisionCost
from dragoman.data.corpora.corpus import CorpusConfig
from dragoman.data.corpora.readers import read_sides
from dragoman.data.held_out.sets import HeldOutSets
from dragoman.inference.translation.request import SourceTags
from dragoman.tasks.translation.precision_measurement import ValidationPairs
from dragoman.tasks.translation.precision_measurement import measure_precision_cost as measure
from dragoman.tasks.translation.validation import HeldOutPairs
from dragoman.text.tokenizers import Tokenizers
from dragoman.training.progress.final_steps import FinalSteps


def measure_precision_cost(
    model: str | Path,
    source: str | Path | None = None,
    reference: str | Path | None = None,
    *,
    to: str | None = None,
    tags: Sequence[str] = (),
    threads: int | None = None,
    quiet: bool = False,
) -> PrecisionCost:
    r"""Measure what int8 costs a model, and write it into its folder and card, as `evaluate precision-cost` does.

    `translate` and `serve` then choose the precision by this measurement. source, reference: files of sentence pairs;
    both None: the validation set of the run. to, tags: as in `Translator.request`. threads:
    as in `Translator.load`. Raises ConfigError if only one file is given or if the folder names no validation set, and
    the errors of `tasks.translation.precision_measurement.measure_precision_cost`.

    >>> from dragoman import measure_precision_cost
    >>> from pathlib import Path
    >>> for language in ("en", "de"):
    ...     lines = Path(f"train.{language}").read_text(encoding="utf-8").splitlines()
    ...     _ = Path(f"first.{language}").write_text("\n".join(lines[:100]), encoding="utf-8")
    >>> measure_precision_cost("runs/ende", "first.en", "first.de").sentences
    100
    """
    folder = Path(model)
    if (source is None) != (reference is None):
        raise ConfigError("the sentence pairs need both sides: give --source and --reference, or neither of them")
    check_serves(folder, "translate")
    with quietly(quiet):
        use_threads(threads)
        if source is None or reference is None:
            if to is not None or tags:
                raise ConfigError("the validation set has its own tags: leave out --to and --tags, or give --source")
            pairs = pooled_pairs([HeldOutPairs(corpus, *read_sides(corpus)) for corpus in _validation_sets(folder)])
        else:
            corpus = CorpusConfig(source=Path(source), target=Path(reference))
            sources, targets = read_sides(corpus)
            all_tags = SourceTags(Tokenizers.load(folder).source, read_meta(folder)).of(to, tags)
            pairs = ValidationPairs(str(corpus), sources, targets, [all_tags] * len(sources))
        return measure(folder, pairs, threads)


_PART, _SAFELY = 0.5, 0.4
"""Fractions of what is left of a time limit: what the measurement may take, and after which it takes no more chunks."""


def measure_after_training(folder: Path, pairs: ValidationPairs, steps: FinalSteps, expected: float = 0.0) -> None:
    """Measure what int8 costs if there is time, and print the result, or the reason why it was not measured.

    expected: as in `FinalSteps.run`. Raises no Exception.
    """
    steps.run(
        "the measurement of int8",
        lambda: _measure_and_report(folder, pairs, steps.end_of(_SAFELY)),
        fraction=_PART,
        expected=expected,
        remedy=f"dragoman evaluate precision-cost {quote(str(folder))} measures it",
    )


def _measure_and_report(folder: Path, pairs: ValidationPairs, deadline: float | None) -> None:
    try:
        cost = measure(folder, pairs, deadline=deadline)
    except (ConfigError, DataError) as error:
        info(f"int8 was not measured: {error}")
    except DragomanError as error:
        warn(f"int8 was not measured: {error}")
    except Exception as error:  # of a compiler, a file system, or another library: the model is complete without it
        warn(f"int8 was not measured: {type(error).__name__}: {error}")
    else:
        here = cost.int8[0]  # the others are for other processors; the model card has them
        info(f"int8: {cost.summary(here)}; the set is translated {here.speed:.1f} times as fast as in float32.")


def pooled_pairs(sets: Sequence[HeldOutPairs]) -> ValidationPairs:
    """Return the pairs of all validation sets in turn, so that the first pairs are of all sets."""
    rows = [
        [(source, target, each.corpus.all_tags) for source, target in zip(each.sources, each.targets, strict=True)]
        for each in sets
    ]
    mixed = [row for group in zip_longest(*rows) for row in group if row is not None]
    sources, targets, tags = zip(*mixed, strict=True) if mixed else ((), (), ())
    return ValidationPairs(", ".join(each.name for each in sets), sources, targets, tags)


def _validation_sets(folder: Path) -> list[CorpusConfig]:
    """Return the validation sets of a model folder, named or held out. Raises ConfigError if there are none."""
    data = read_config(folder).get("data")
    found = data.get("valid") if isinstance(data, dict) else None
    entries = [each for each in (found if isinstance(found, list) else [found]) if isinstance(each, dict)]
    if not entries and (stored := HeldOutSets.of_model(folder)) is not None:
        return list(stored.valid)
    if not entries:
        raise ConfigError(f"{folder / CONFIG} names no validation set: give --source FILE and --reference FILE")
    return [parse_settings(entry, CorpusConfig, f"data.valid in {folder / CONFIG}") for entry in entries]
