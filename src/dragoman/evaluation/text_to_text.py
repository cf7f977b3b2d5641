"""`evaluate_outputs` scores the summaries, labels or answers that models write, beside simple baselines."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.base.errors import ConfigError, in_files
from dragoman.base.log import quietly
from dragoman.base.machine.device import use_threads
from dragoman.base.settings.load import Overrides, all_overrides, load_settings, parse_settings
from dragoman.checkpoint.card.card import task_kind
from dragoman.checkpoint.folder import CONFIG, read_config
from dragoman.data.corpora.corpus import CorpusConfig, TextCorpusConfig
from dragoman.data.corpora.readers import HeldOutRecords, read_references
from dragoman.evaluation.evaluate import score_systems
from dragoman.evaluation.results import Evaluation
from dragoman.evaluation.stored_test_set import stored_records
from dragoman.evaluation.test_set import TestSet, warn_of_size
from dragoman.inference.load import model_for
from dragoman.metrics.registry import METRICS, metric_of, metrics_with
from dragoman.models.kinds.registry import kind_of
from dragoman.text.sentences.splitter import Splitter

ROUGE = metrics_with("rougeL")
_SEED = 1
_MAX_TOKENS = 256
"""Maximum number of tokens that a language model generates."""


def writes_outputs(folder: Path) -> bool:
    """Return whether the model in a folder was trained to write texts of records, which `evaluate_outputs` scores."""
    return (folder / CONFIG).is_file() and _writes(read_config(folder))


def _writes(config: Mapping[str, Any]) -> bool:
    return task_kind(config) in ("summarization", "text_to_text") or (
        task_kind(config) == "language_model" and bool(_validation_set(config).get("template"))
    )


def _validation_set(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the first validation set, or of the first training corpus from which it was held out."""
    data = config.get("data")
    sets = (data.get("valid") or data.get("train")) if isinstance(data, Mapping) else None
    first = sets[0] if isinstance(sets, list) and sets else sets
    return dict(first) if isinstance(first, Mapping) else {}


def evaluate_outputs(
    models: str | Path | Sequence[str | Path],
    test: str | Path | CorpusConfig | None = None,
    settings: Overrides = (),
    *,
    metric: Sequence[str] | None = None,
    beam: int | None = None,
    batch_size: int = 32,
    device: str | None = None,
    threads: int | None = None,
    quiet: bool = False,
) -> Evaluation:
    """Score the texts that one or more models write for the records of a test set, like `dragoman evaluate outputs`.

    The first model is compared with the others and with baselines by paired bootstrap. For summaries, the baselines are
    the first sentence and a random sentence of each text; for labels, the most frequent label.

    models: folders of the task `summarization` or `text_to_text`, or language models that were trained with templates.
    test: a file in the format of the first model's `data.valid`, or of `data.train` if the run names no validation
    set; a corpus with its settings; None: the test set that the run names (`data.test`) or has held out. settings:
    other settings of the file, such as `{"template.source": "{abstract}"}`. metric: keys of metrics (default: those of
    the model's validation; for a language model, ROUGE). beam: beam size (default: that of the model; language models
    generate greedily). device, threads: as in `Translator.load`.

    Raises ConfigError for a model of another task and for an unknown metric or setting, DataError if the file cannot be
    read, and the errors of `Translator` and `LanguageModel`.

    >>> from dragoman import evaluate_outputs, train
    >>> data = {"train": {"labelled": "reviews-valid.tsv"}, "valid": {"labelled": "reviews-valid.tsv"}}
    >>> tiny = {"preset": "tiny", "width": 32, "encoder": {"layers": 1}, "decoder": {"layers": 1}}
    >>> recipe = {"task": {"kind": "text_to_text"}, "data": data, "model": tiny, "out": "runs/answers"}
    >>> result = train(recipe, {"train.max_steps": 1, "text.subword.size": 300}, quiet=True)
    >>> print(evaluate_outputs("runs/answers", "reviews-test.tsv", beam=1))
    runs/answers
      outputs that are not a label = ...
    """
    folders = [Path(models)] if isinstance(models, str | Path) else list(map(Path, models))
    configs = [read_config(folder) for folder in folders]
    for folder, config in zip(folders, configs, strict=True):
        if not _writes(config):
            raise ConfigError(
                f"{folder} was trained without templates of records: evaluate it with --source and --reference"
            )
    with quietly(quiet):
        use_threads(threads)
        if test is None:
            corpus, *others = stored_records(folders[0])
            if others:
                raise ConfigError(
                    f"{folders[0]} has several test sets, choose one of them: {', '.join(map(str, others))}"
                )
        elif isinstance(test, CorpusConfig):
            corpus = test
        else:
            corpus = corpus_like_validation(folders[0], configs[0], Path(test), settings)
        held_out = read_references(corpus)
        systems = [
            (
                str(folder),
                _outputs(
                    folder,
                    config,
                    held_out.sources,
                    corpus,
                    beam=beam,
                    batch_size=batch_size,
                    device=device,
                    threads=threads,
                ),
            )
            for folder, config in zip(folders, configs, strict=True)
        ]
        keys = list(_metrics(configs[0]) if metric is None else metric)
        metrics = {key: metric_of(key) for key in keys}
        for each in metrics.values():
            each.require({"references", "sources"})
        systems += baselines(held_out, set(keys), _language(configs[0]))
        test_set = TestSet([str(corpus)] * len(held_out.references), held_out.references, held_out.sources)
        warn_of_size(len(test_set), "texts")
        return score_systems(systems, test_set, metrics, None)


def corpus_like_validation(
    folder: Path, config: Mapping[str, Any], test: Path, settings: Overrides = ()
) -> CorpusConfig:
    """Return the settings of a test set: those of the model's validation set, with another file and other settings."""
    where = f"data.valid in {folder / CONFIG}"
    stored: Any = _validation_set(config)
    if task_kind(config) == "language_model":
        corpus = parse_settings(stored, TextCorpusConfig, where).as_records()
    else:
        corpus = parse_settings(stored, CorpusConfig, where)
    if corpus.source is not None:
        raise ConfigError(f"the validation set of {folder} consists of two files: give --source and --reference")
    base = corpus.with_file(test).model_dump(mode="json", exclude_unset=True)
    return load_settings(base, all_overrides(settings), CorpusConfig)


def _metrics(config: Mapping[str, Any]) -> Sequence[str]:
    """Return the keys of the metrics of a model's validation."""
    train = config.get("train")
    metric = train.get("metric") if isinstance(train, Mapping) else None
    found = metrics_with(str(metric)) if metric in METRICS and metric != "loss" else ()
    return found or (ROUGE if task_kind(config) != "text_to_text" else metrics_with("accuracy"))


def _outputs(
    folder: Path,
    config: Mapping[str, Any],
    sources: Sequence[str],
    corpus: CorpusConfig,
    *,
    beam: int | None,
    batch_size: int,
    device: str | None,
    threads: int | None,
) -> list[str]:
    """Return the texts that a model writes for all sources."""
    with in_files(corpus.files[0]):
        if "generate" in kind_of(config["model"]).abilities:
            if beam is not None:
                raise ConfigError(f"{folder} is a language model, which generates without a beam: leave out --beam")
            model = model_for("generate", folder, device)
            request = model.request(top_k=1, max_tokens=_MAX_TOKENS)
            return [text.strip() for text in model.generate(sources, request, batch_size=batch_size)]
        translator = model_for("translate", folder, device, preferred={"precision": None, "threads": threads})
        return translator.translate(sources, batch_size=batch_size, beam=beam)


def _language(config: Mapping[str, Any]) -> str:
    """Return the language of the texts, whose rules divide them into sentences; English if the run names none."""
    data = config.get("data")
    data = data if isinstance(data, Mapping) else {}
    return str(data.get("source_language") or data.get("language") or "en")


def baselines(held_out: HeldOutRecords, metrics: set[str], language: str = "en") -> list[tuple[str, list[str]]]:
    """Return the names and outputs of the baselines for these metrics. language: of the texts."""
    systems = []
    if any(key.startswith("rouge") for key in metrics):
        splitter = Splitter(language)
        sentences = [_sentences(*each, splitter) for each in zip(held_out.contents, held_out.sentences, strict=True)]
        draw = np.random.default_rng(_SEED)
        systems.append(("first sentence", [each[0] for each in sentences]))
        systems.append(("random sentence", [each[int(draw.integers(len(each)))] for each in sentences]))
    if metrics & {"accuracy", "exact_match", "answer_f1"}:
        label = Counter(label for alternatives in held_out.references for label in alternatives).most_common(1)[0][0]
        systems.append((f"always {label!r}", [label] * len(held_out.sources)))
    return systems


def _sentences(text: str, sentences: Sequence[str], splitter: Splitter) -> Sequence[str]:
    """Return the sentences of a text. sentences: those of the corpus, if it contains them as a list."""
    spans = splitter.sentences(text) if not sentences else ()
    return sentences or [text[begin:end] for begin, end in spans] or [text]
