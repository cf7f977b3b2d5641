"""`dragoman score`: how probable given translations are under a model."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import BatchSize, Device, Model, Tags, Threads, To, split_tags, use_threads


def score(
    model: Model,
    source: Annotated[Path, typer.Option("--source", help="Source sentences, one a line.")],
    target: Annotated[Path, typer.Option("--target", help="Their translations, line by line.")],
    to: To = None,
    tags: Tags = None,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """One log-probability (nats) a pair on stdout; the perplexity of the whole on stderr."""
    use_threads(threads)
    from dragoman.base.errors import in_files
    from dragoman.base.log import info
    from dragoman.cli.lines import read_together
    from dragoman.evaluate.perplexity import perplexity
    from dragoman.translator import Translator

    sources, targets = read_together(source, target)
    translator = Translator.load(model, device)
    with in_files(source, target):
        scores = translator.score(sources, targets, batch_size, to=to, tags=split_tags(tags))
    for pair in scores:
        print(f"{pair.log_probability:.6f}")
    whole = perplexity(
        sum(pair.log_probability for pair in scores),
        sum(pair.tokens for pair in scores),
        sum(len(line.split()) + 1 for line in targets),
    )
    info(
        f"{len(scores)} pairs, log-probability {whole.log_probability:.2f} nats; perplexity a token "
        f"{whole.per_token:.3f} ({whole.tokens} tokens), a word {whole.per_word:.3f} ({whole.words} words); "
        "ends of sentence counted"
    )
