"""`dragoman backtranslate`: text of the target language in, synthetic pairs for training out."""

import json
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import (
    BatchSize,
    Beam,
    Device,
    LengthPenalty,
    Seed,
    Tags,
    Temperature,
    Threads,
    To,
    TopK,
    TopP,
    refuse,
    sampling,
    split_tags,
    use_threads,
)

if TYPE_CHECKING:
    from dragoman.translator import Translator

BEAM_MIN_SCORE = -1.5
"""Nats a token: the lowest score of beam search's translations unless told otherwise."""

COPIED_SHARE = 0.2
"""Of the lines. Where more translations repeat their line, the model may well be one of the other direction."""


class Method(StrEnum):
    """How sources are found."""

    beam = "beam"
    sample = "sample"


def backtranslate(
    model: Annotated[
        Path, typer.Argument(help="A model folder of the reverse direction: it reads what is to be written later.")
    ],
    text: Annotated[
        Path, typer.Option("--input", "-i", help="Text of the target language, a sentence a line; .gz .xz .zst too.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", "--out", help="Where the pairs go, as synthetic source TAB line; .gz .xz .zst too."
        ),
    ],
    language: Annotated[
        str | None,
        typer.Option("--language", help="Language of the text, to be checked against the one that the model reads."),
    ] = None,
    to: To = None,
    tags: Tags = None,
    method: Annotated[
        Method, typer.Option("--method", help="beam: the best translation; sample: one drawn at random.")
    ] = Method.beam,
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    empty: Annotated[bool | None, typer.Option("--empty/--no-empty", help="Drop pairs with a blank side.")] = None,
    duplicates: Annotated[
        bool | None, typer.Option("--duplicates/--no-duplicates", help="Drop lines that came before.")
    ] = None,
    unfinished: Annotated[
        bool | None, typer.Option("--unfinished/--no-unfinished", help="Drop what the length limit stopped.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", help="Most subword tokens of a line (default: 250); 0: any.")
    ] = None,
    copied: Annotated[
        float | None,
        typer.Option("--copied", help="Share of a translation's words that the line has (default: 0.8); 0: any."),
    ] = None,
    max_ratio: Annotated[
        float | None,
        typer.Option("--max-ratio", help="Most times that one side may be longer than the other (default: 4); 0: any."),
    ] = None,
    repeats: Annotated[
        int | None, typer.Option("--repeats", help="Times that a phrase may not stand in a row (default: 4); 0: any.")
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            help="Lowest mean log-probability a token, in nats (default: -1.5 with beam, else 0); 0: any.",
        ),
    ] = None,
    batch_size: BatchSize = 64,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Make training pairs of text in the target language: a model of the reverse direction writes their sources.

    The same command goes on where a killed one has stopped. What is dropped is counted by rule. At the end stand the
    YAML lines that add the pairs to a recipe, with the tag bt.
    """
    use_threads(threads)
    from dragoman.backtranslation.filters import FilterConfig
    from dragoman.backtranslation.run import BackTranslation, check
    from dragoman.backtranslation.synthesis import LINES, kept
    from dragoman.base.settings.load import parse_settings
    from dragoman.cli.progress import LineProgress
    from dragoman.data.corpora.lines import count_lines
    from dragoman.translator import Translator

    if method is Method.beam:
        refuse(
            {"--temperature": temperature, "--top-k": top_k, "--top-p": top_p, "--seed": seed}, "with --method sample"
        )
    else:
        refuse({"--beam": beam, "--length-penalty": length_penalty}, "with --method beam")
    given = {"empty": empty, "duplicates": duplicates, "unfinished": unfinished}
    rules: dict[str, object] = {name: value for name, value in given.items() if value is not None}
    lowest = BEAM_MIN_SCORE if min_score is None and method is Method.beam else min_score
    limits = {
        "max_tokens": max_tokens,
        "copied": copied,
        "max_ratio": max_ratio,
        "repeats": repeats,
        "min_score": lowest,
    }
    rules |= {name: value or None for name, value in limits.items() if value is not None}
    filters = parse_settings(rules, FilterConfig, "from the command line")
    drawn = sampling(temperature, top_k, top_p, seed) if method is Method.sample else None
    check(text, output)
    translator = Translator.load(model, device, threads=threads)
    translator.report_cut = False  # they are counted
    _check_direction(translator, language)
    request = translator.request(beam=beam, length_penalty=length_penalty, sampling=drawn, to=to, tags=split_tags(tags))
    task = BackTranslation(model, text, output, request, filters, batch_size)
    with LineProgress(lambda: count_lines(text)) as progress:
        counts = task.run(translator, lambda counts: progress.tell(counts[LINES], kept(counts)))
    _tell(counts, output, language or translator.meta.source_language)


def _check_direction(translator: "Translator", language: str | None) -> None:
    """Raises ConfigError where the text is not in the language that the model reads."""
    from dragoman.base.errors import ConfigError
    from dragoman.base.log import info

    reads, writes = translator.meta.source_language, translator.meta.target_language
    if translator.tokenizers.reads_vectors:
        raise ConfigError("this model reads feature vectors, no text: back-translation needs one that reads text")
    if language is not None and reads is not None and language != reads:
        raise ConfigError(
            f"the text is in {language!r}, but the model reads {reads!r}: back-translation needs a model of the other "
            f"direction, one that reads {language!r}"
        )
    if reads is not None:
        info(f"The model reads {reads}{f' and writes {writes}' if writes else ''}: the text must be in {reads}.")


def _tell(counts: Counter[str], output: Path, language: str | None) -> None:
    """What became of the lines, and how the pairs are used."""
    from dragoman.backtranslation.synthesis import KEPT, LINES, account
    from dragoman.base.log import info, warn

    info(account(counts))
    if counts["copied"] > COPIED_SHARE * counts[LINES]:
        warn("Many translations repeat their line: is this a model of the reverse direction? It must read the text.")
    if not counts[KEPT]:
        warn(f"{output} is empty: no pair was kept. The rules are options; `dragoman backtranslate --help` lists them.")
        return
    several = (
        "" if language is None else f"    # target_language: {language}   (where one model writes several languages)\n"
    )
    print(
        f"# A recipe's list of corpora with these pairs; weight them, or give data.temperature, as you like.\n"
        f"data:\n  train:\n  - source: …\n    target: …\n{several}"
        f"  - tsv: {json.dumps(str(output), ensure_ascii=False)}\n    tags: [bt]"
    )
