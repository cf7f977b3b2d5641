"""`judge_folder`: the verdict on the translations of a test set by a model folder."""

from pathlib import Path

from dragoman.base.errors import DragomanError
from dragoman.checkpoint.folder import read_config, read_meta
from dragoman.checkpoint.systems import NEURAL, describe_choice
from dragoman.checkpoint.verdict import Verdict
from dragoman.data.held_out.sets import HeldOutSets
from dragoman.metrics.metric import Outputs
from dragoman.tasks.verdict.history import LearningState
from dragoman.tasks.verdict.judge import JudgedModel, judge
from dragoman.tasks.verdict.training_pairs import TrainingPairs


def judge_folder(
    folder: Path,
    outputs: Outputs,
    data: str,
    tokenizer: str,
    *,
    language: str | None,
    system: str | None = None,
    threads: int | None = None,
) -> Verdict:
    """Compare the outputs of a model folder with those of simple systems that learn from the corpora of its run.

    data: name of the test set. tokenizer: of BLEU. language: target language of the outputs, if it is known. system:
    the system of the folder that translated; None: the best one. threads: as in `judge`. The result states the reason
    if the corpora cannot be read.
    """
    try:
        config, meta = read_config(folder), read_meta(folder)
    except DragomanError:  # an exported model
        model = JudgedModel(str(folder), {}, None, data, outputs, tokenizer)
        return judge(model, TrainingPairs([], missing=f"{folder} was exported, and names no training corpus"), threads)
    language = language if meta.target_languages else None
    lengths = [each.pairs for code, each in meta.lengths.items() if code in ("", language) or language is None]
    name, choice = str(folder), ""
    system = system or (meta.systems[0].name if meta.systems else NEURAL)
    if len(meta.systems) > 1:
        train = config.get("train")
        metric = "chrF2" if isinstance(train, dict) and train.get("metric") == "chrf" else "BLEU"
        choice = describe_choice(folder, meta.systems, system, metric)
        name += f" ({next(each.title for each in meta.systems if each.name == system)})"
    learning = LearningState.of(folder, config)
    model = JudgedModel(name, config, sum(lengths) or None, data, outputs, tokenizer, system, choice, learning)
    held_out = HeldOutSets.of_model(folder)
    keys = None if held_out is None else held_out.keys()
    return judge(model, TrainingPairs.of_run(config, language, keys), threads)
