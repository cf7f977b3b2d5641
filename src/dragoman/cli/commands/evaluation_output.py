"""The output of `dragoman evaluate` for everything except translations: labels, alignments, pairs and perplexities."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def print_precision_cost(
    model: Path | None,
    source: Path | None,
    references: Sequence[Path],
    to: str | None,
    tags: Sequence[str],
    threads: int | None,
    as_json: bool,
) -> None:
    """Measure what int8 costs a model, and print the section of its card."""
    from dragoman.base.errors import ConfigError
    from dragoman.tasks.translation.precision_cost import measure_precision_cost

    if model is None:
        raise ConfigError("--precision-cost measures a model: name its folder")
    if len(references) > 1:
        raise ConfigError("--precision-cost compares with a single reference: give --reference once")
    cost = measure_precision_cost(model, source, next(iter(references), None), to=to, tags=tags, threads=threads)
    print(format_json(cost.model_dump(mode="json")) if as_json else "\n".join(cost.card_section()))


def print_label_measures(
    model: Path | None,
    others: Sequence[Path],
    tests: Sequence[Path],
    settings: Sequence[str],
    confusion: Path | None,
    as_json: bool,
    arguments: Mapping[str, Any],
) -> None:
    """Print the measures of models that predict labels on each test set, and draw the confusion matrix of the first.

    arguments: further arguments of `evaluate_labels`.
    """
    from dragoman.base.errors import ConfigError
    from dragoman.evaluation.evaluate_labels import evaluate_labels

    if model is None:
        raise ConfigError("--test evaluates a model: name its folder")
    if confusion is not None and len(tests) > 1:
        raise ConfigError("--confusion draws the matrix of one test set: give --test once")
    models = [model, *others]
    results = [evaluate_labels(models, test, settings, **arguments) for test in tests]
    if confusion is not None:
        matrix = results[0].reports[0].confusion
        if matrix is None:
            raise ConfigError(f"{model} does not predict classes of texts: leave out --confusion")
        from dragoman.figures.confusion import label_confusion

        label_confusion(matrix).write(confusion)
    if len(results) == 1:
        print(format_json(results[0].as_json()) if as_json else results[0])
    elif as_json:
        listed = [{"test": str(test), **each.as_json()} for test, each in zip(tests, results, strict=True)]
        print(format_json({"tests": listed}))
    else:
        print("\n\n".join(f"{test}\n{each}" for test, each in zip(tests, results, strict=True)))


def writes_outputs(model: Path) -> bool:
    from dragoman.evaluation.text_to_text import writes_outputs

    return writes_outputs(model)


def print_output_scores(
    models: Sequence[Path], tests: Sequence[Path], settings: Sequence[str], as_json: bool, arguments: Mapping[str, Any]
) -> None:
    """Print the scores of the texts that models write for each test set. arguments: of `evaluate_outputs`."""
    from dragoman.evaluation.text_to_text import evaluate_outputs

    results = [(test, evaluate_outputs(models, test, settings, **arguments)) for test in tests]
    if as_json:
        listed = [{"test": str(test), **each.as_json()} for test, each in results]
        print(format_json(listed[0] if len(listed) == 1 else {"tests": listed}))
        return
    print("\n\n".join(f"{test}\n{each}" for test, each in results))


def print_alignment_scores(
    gold: Path,
    hypotheses: Sequence[Path],
    bases: Mapping[str, Any],
    source: Path | None,
    references: Sequence[Path],
    as_json: bool,
    pictures: tuple[Path | None, Path | None, int],
) -> None:
    """Print the AER, precision, recall and F1 of word alignments.

    pictures: files for the confusion matrix and for the links of a sentence pair, and the number of this pair.
    """
    from dragoman.base.errors import ConfigError
    from dragoman.evaluation.evaluate_alignments import evaluate_alignments

    if len(references) > 1:
        raise ConfigError("--alignments aligns each source with a single target: give --reference once")
    result = evaluate_alignments(
        gold,
        hypotheses,
        gold_base=bases["--gold-base"],
        hypothesis_base=bases["--hypothesis-base"],
        source=source,
        target=next(iter(references), None),
    )
    confusion, draw, line = pictures
    if confusion is not None:
        result.confusion().write(confusion)
    if draw is not None:
        result.drawing(line).write(draw)
    print(format_json(result.as_json()) if as_json else result)


def print_pair_accuracy(
    model: Path | None, pairs: Path, settings: Sequence[str], device: str | None, threads: int | None, as_json: bool
) -> None:
    """Print the accuracy of a model on minimal pairs."""
    from dragoman.base.errors import ConfigError
    from dragoman.evaluation.minimal_pairs import evaluate_pairs

    if model is None:
        raise ConfigError("--pairs evaluates a model: name its folder")
    result = evaluate_pairs(model, pairs, settings, device=device, threads=threads)
    print(format_json(result.as_json()) if as_json else result)


def is_language_model(model: Path) -> bool:
    from dragoman.evaluation.score import is_language_model_folder

    return is_language_model_folder(model)


def restores_text(model: Path) -> bool:
    from dragoman.evaluation.denoising import is_denoising_folder

    return is_denoising_folder(model)


def print_denoising_scores(
    model: Path,
    texts: Sequence[Path],
    as_json: bool,
    documents: str | None,
    heading: str | None,
    device: str | None,
    threads: int | None,
) -> None:
    """Print the perplexities of restoring each text."""
    from dragoman.evaluation.denoising import evaluate_denoising

    options: dict[str, Any] = {"documents": documents, "heading": heading, "device": device, "threads": threads}
    result = [(text, evaluate_denoising(model, text, **options)) for text in texts]
    if as_json:
        print(format_json({"texts": [{"text": str(text), **each.as_json()} for text, each in result]}))
        return
    print(model)
    for text, each in result:
        print(f"  {text}: {each}")


def print_perplexities(
    model: Path,
    texts: Sequence[Path],
    device: str | None,
    threads: int | None,
    window_options: dict[str, Any],
    as_json: bool,
) -> None:
    """Print the perplexities of a language model on each text."""
    from dragoman.evaluation.score import score
    from dragoman.inference.generation.language_model import LanguageModel

    loaded = LanguageModel.load(model, device, "score")
    result = [(text, score(loaded, text, threads=threads, **window_options)) for text in texts]
    tokenizer = loaded.tokenizer
    if as_json:
        values = [{"text": str(text), "documents": len(each.each), **each.total.as_json()} for text, each in result]
        vocabulary = {"kind": tokenizer.kind, "size": tokenizer.size, "fingerprint": tokenizer.fingerprint}
        print(format_json({"model": str(model), "vocabulary": vocabulary, "texts": values}))
        return
    print(f"{model} (vocabulary of kind {tokenizer.kind}, {tokenizer.size:,} entries, {tokenizer.fingerprint[:8]})")
    for text, each in result:
        print(f"  {text} ({len(each.each)} documents): {each.total}")


def format_json(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2)
