"""`judge_after_training`: the verdict on a model that has just been trained, on its validation set."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dragoman.base.log import quietly, warn
from dragoman.checkpoint.folder import read_meta
from dragoman.checkpoint.systems import NEURAL, write_verdict
from dragoman.checkpoint.verdict import Verdict
from dragoman.inference.translation.translator import Translator
from dragoman.metrics.metric import Outputs
from dragoman.metrics.resampling import FEWEST_EXAMPLES
from dragoman.tasks.verdict.folder import judge_folder


def judge_after_training(
    folder: Path, outputs: Outputs | None, data: str, tokenizer: str, *, language: str | None, threads: int | None
) -> Verdict | None:
    """Judge the system that a model folder translates with, and write the verdict into the folder and its card.

    outputs: of the folder's own model on the validation set; another system translates its sources. data: name of the
    set. language: its target language, if the model has several. tokenizer, threads: as in `judge_folder`. Warns if the
    model is worse than copying or than a dictionary. Returns None without outputs or with too few of them, and after a
    failure, which is reported: the model is complete without a verdict.
    """
    if outputs is None or outputs.sources is None or len(outputs.hypotheses) < FEWEST_EXAMPLES:
        return None
    try:
        systems = read_meta(folder).systems
        if systems and systems[0].name != NEURAL:
            outputs = replace(outputs, hypotheses=_translate(folder, outputs.sources, threads))
        verdict = judge_folder(folder, outputs, data, tokenizer, language=language, threads=threads)
        write_verdict(folder, verdict)
    except Exception as error:  # of a compiler, a file system, or another library
        warn(f"the model was not compared with simple systems: {type(error).__name__}: {error}")
        return None
    if verdict.is_worse:
        warn(f"{folder}: {verdict.sentence}")
    return verdict


def _translate(folder: Path, sources: Sequence[str], threads: int | None) -> list[str]:
    with quietly():
        return Translator.load(folder, "cpu", threads=threads).translate(list(sources))
