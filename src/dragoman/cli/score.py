"""`dragoman score`: how probable given translations, or texts, are under a model."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import BatchSize, Device, Model, Tags, Threads, To, refuse, split_tags, use_threads
from dragoman.cli.texts import DocumentsOption, Heading, Reading, Stride, is_language_model, score_documents


def score(
    model: Model,
    target: Annotated[
        Path, typer.Option("--target", help="Translations, line by line; of a language model, the text to score.")
    ],
    source: Annotated[Path | None, typer.Option("--source", help="Source sentences of the translations.")] = None,
    to: To = None,
    tags: Tags = None,
    documents: DocumentsOption = None,
    heading: Heading = None,
    stride: Stride = None,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """One log-probability (nats) a pair, or a document, on stdout; the perplexity of the whole on stderr."""
    use_threads(threads)
    from dragoman.base.errors import ConfigError, in_files
    from dragoman.base.log import info
    from dragoman.cli.lines import read_together
    from dragoman.metrics.perplexity import TextScore
    from dragoman.translator import Translator

    if is_language_model(model):
        refuse({"--source": source, "--to": to, "--tags": tags}, "with a translation model")
        score_documents(model, target, Reading(documents, heading, stride, batch_size, device))
        return
    refuse({"--documents": documents, "--heading": heading, "--stride": stride}, "with a language model")
    if source is None:
        raise ConfigError(f"{model} translates: give the sentences that the translations are of, --source FILE")
    sources, targets = read_together(source, target)
    translator = Translator.load(model, device, threads=threads)
    with in_files(source, target):
        scores = translator.score(sources, targets, batch_size, to=to, tags=split_tags(tags))
    for pair in scores:
        print(f"{pair.log_probability:.6f}")
    ids = translator.tokenizers.target.encode_batch(targets)
    parts = (each.log_probability for each in scores)
    info(f"{len(scores)} pairs, {TextScore.total(map(TextScore.of, targets, ids, parts))}")
