"""`dragoman demo`: train, evaluate and visualise a small translation model on the built-in corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.arguments import check_settings
from dragoman.cli.command import command
from dragoman.cli.options import Quiet
from dragoman.cli.results import print_results
from dragoman.cli.setting_names import check_setting_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.addons.lecture.demo_sizes import DemoSize
    from dragoman.addons.lecture.grammar.corpus import EmbeddedCorpus
    from dragoman.inference.translation.translator import Translator

LANGUAGES = {"en": "English", "de": "German", "fr": "French"}
TRAIN, VALID, TEST = 12000, 300, 500
_GOOD_BLEU = 65.0
"""BLEU on the validation set that the training continues for, for at most `_EXTENSIONS` times half its length."""
_EXTENSIONS = 2


@command(
    "dragoman demo",
    "dragoman demo --corpus-only --out corpus",
    takes_run_settings=True,
    interrupted="interrupted: completed work is kept. Repeat the same command to resume",
)
def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Run folder; an unfinished demo in this folder is resumed.")
    ] = Path("runs/demo"),
    languages: Annotated[str, typer.Option("--languages", help="Source and target: two of en, de, fr.")] = "en-de",
    settings: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE]...", help="Settings that override those of the demo.", show_default=False),
    ] = None,
    corpus_only: Annotated[
        bool,
        typer.Option("--corpus-only", help="Only write the corpus to the folder --out, for runs of your own."),
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a tiny translation model on the built-in corpus.

    The demo also scores the model and plots its attention. It chooses the size of the model by the speed of the machine
    and takes about four minutes on two cores; beside other programs it takes longer, and the model is as good.
    """
    import time
    from shlex import quote

    from dragoman.addons.lecture.demo_sizes import SMALL
    from dragoman.base.errors import ConfigError, reject_options
    from dragoman.base.files import check_new_folder
    from dragoman.base.log import info
    from dragoman.base.settings.load import load_settings
    from dragoman.figures.heads import layer_heads
    from dragoman.inference.translation.translator import Translator
    from dragoman.metrics.bleu import BLEU
    from dragoman.metrics.chrf import ChrF
    from dragoman.tasks.train import train
    from dragoman.tasks.translation.config import TranslationRun

    source, _, target = languages.partition("-")
    if source not in LANGUAGES or target not in LANGUAGES or source == target:
        raise ConfigError(
            f"--languages {languages}: give two different languages out of {', '.join(LANGUAGES)}, such as en-de"
        )
    if corpus_only:
        reject_options({"settings": settings}, "without --corpus-only")
        check_new_folder(out)
        _write_corpus(out, source, target)
        print_results(f"{out}: {TRAIN:,} pairs for training, {VALID:,} for validation, {TEST:,} for testing")
        return
    check_settings(settings or [])
    check_setting_names(None, settings or [])
    start = time.monotonic()
    folder = out / "corpus"
    recipe = out / "recipe.yaml"
    if out.is_dir() and not (recipe.is_file() and folder.is_dir()):
        check_new_folder(out)
    resume = (out / "config.yaml").is_file()
    if not resume:
        _write_recipe(recipe, _recipe(out, folder, source, target, SMALL))
        load_settings(recipe, settings or [], TranslationRun)  # reports wrong settings before the work
        size = _choose_size(f"{LANGUAGES[source]}–{LANGUAGES[target]}")
        _write_recipe(recipe, _recipe(out, folder, source, target, size))
    config = load_settings(recipe, settings or [], TranslationRun)
    if (config.data.source_language, config.data.target_language) != (source, target):
        raise ConfigError(f"{out} has a demo for other languages: choose another --out for --languages {languages}")
    corpus = _write_corpus(folder, source, target)
    sources, references = ([getattr(each, language) for each in corpus.test] for language in (source, target))
    info(f"the corpus is in {folder}")
    result = train(config, resume=resume)
    for _ in range(0 if settings else _EXTENSIONS):
        if result.validation["bleu"].value >= _GOOD_BLEU:
            break
        info(f"Validation BLEU is below {_GOOD_BLEU:.0f}, so the training continues.")
        result = train(recipe, [f"train.max_steps={result.step + result.step // 2}"], resume=True)

    translator = Translator.load(out)
    translations = translator.translate(sources)
    print_results(f"\n{LANGUAGES[source]} → {LANGUAGES[target]}, {len(sources)} test sentences:")
    for score in (BLEU().score(translations, references), ChrF().score(translations, references)):
        print_results(f"  {score}")
    print_results(f"  {_compare_sets(corpus, result.validation['bleu'].value)}")
    _print_examples(sources, translations, references)
    example = _choose_example(sources, translations, references)
    attention = out / "attention.png"
    layer_heads(_most_focused_map(translator, sources[example])).write(attention)
    print_results(f"\nmodel              {out}")
    print_results(f"learning curve     {out / 'curves.png'}")
    print_results(f"attention picture  {attention}")
    print(f"try it             echo {quote(sources[example])} | dragoman translate {out}")
    print(f"look inside        dragoman workbench {out}")
    info(f"the demo took {(time.monotonic() - start) / 60:.1f} minutes")


def _recipe(out: Path, folder: Path, source: str, target: str, size: "DemoSize") -> dict[str, Any]:
    def corpus(part: str) -> dict[str, str]:
        return {"source": str(folder / f"{part}.{source}"), "target": str(folder / f"{part}.{target}")}

    settings = size.settings()
    data = {
        "train": corpus("train"),
        "valid": corpus("valid"),
        **settings["data"],
        "source_language": source,
        "target_language": target,
        "licence": "generated by dragoman's own grammar; free to use",
    }
    # The demo shows the inside of a neural model.
    return {"out": str(out), "systems": [], **settings, "data": data}


def _choose_size(languages: str) -> "DemoSize":
    """Choose the size of the model by the speed of the machine, and print what the demo does and how long it takes."""
    from dragoman.addons.lecture.demo_sizes import choose_size, layer_seconds
    from dragoman.base.log import info

    info(
        f"This demo trains a small {languages} translator on {TRAIN:,} sentence pairs that dragoman's own grammar "
        "generates, measures it on sentences that it has not seen, and shows its translations and its attention."
    )
    layer = layer_seconds()
    size = choose_size(layer)
    minutes = max(1, round(size.seconds(layer) / 60))
    info(
        f"It takes about {minutes} minute{'s' if minutes > 1 else ''} at the present speed of this machine, which "
        f"chose a model of width {size.width} ({size.updates:,} updates); other programs make it slower, not worse."
    )
    return size


def _write_corpus(folder: Path, source: str, target: str) -> "EmbeddedCorpus":
    """Generate the corpus, write it to files, and return it.

    The gold alignments of the test set are written for English and German.
    """
    from dragoman.addons.lecture.grammar.alignments import align_english_german
    from dragoman.addons.lecture.grammar.corpus import generate
    from dragoman.base.files import atomic_write

    folder.mkdir(parents=True, exist_ok=True)
    corpus = generate(seed=1, train=TRAIN, valid=VALID, test=TEST)
    for part, sentences in (("train", corpus.train), ("valid", corpus.valid), ("test", corpus.test)):
        for language in (source, target):
            text = "".join(getattr(sentence, language) + "\n" for sentence in sentences)
            atomic_write(folder / f"{part}.{language}", text)
    if {source, target} == {"en", "de"}:
        gold = [align_english_german(corpus.derivations[sentence]) for sentence in corpus.test]
        links = "".join(f"{(each if source == 'en' else each.reversed()).pharaoh()}\n" for each in gold)
        atomic_write(folder / f"test.{source}-{target}.links", links)
    return corpus


def _write_recipe(path: Path, recipe: dict[str, Any]) -> None:
    from dragoman.base.files import atomic_write, unwritable
    from dragoman.base.settings.yaml import dump_yaml

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path.parent, error) from None
    atomic_write(path, dump_yaml(recipe))


def _compare_sets(corpus: "EmbeddedCorpus", validation: float) -> str:
    """Return why the BLEU of the validation set is higher than that of the test set."""
    from dragoman.addons.lecture.grammar.held_out import held_out

    unseen = ((each, found) for each in corpus.test for found in sorted(held_out(corpus.derivations[each])))
    sentence, found = next((each, found) for each, found in unseen if found.words)
    longer, shorter = (sum(len(each.en.split()) for each in part) / len(part) for part in (corpus.test, corpus.valid))
    return (
        f"On the validation sentences, BLEU was {validation:.1f}: they resemble those of the training. The test is "
        f"harder.\n  Its sentences are longer ({longer:.1f} instead of {shorter:.1f} English words), and each has a "
        "construction, or words together,\n  that training did not show, although it had each word: "
        f"“{found.words[0]}” with “{found.words[1]}”, in “{sentence.en}”"
    )


def _print_examples(sources: "Sequence[str]", translations: "Sequence[str]", references: "Sequence[str]") -> None:
    for row in range(0, len(sources), max(1, len(sources) // 6)):
        print_results(f"\n  source       {sources[row]}")
        print_results(f"  translation  {translations[row]}")
        if translations[row] != references[row]:
            print_results(f"  reference    {references[row]}")


def _choose_example(sources: "Sequence[str]", translations: "Sequence[str]", references: "Sequence[str]") -> int:
    """Return the index of a correctly translated sentence whose attention map has a readable size."""
    correct = [row for row in range(len(sources)) if translations[row] == references[row]] or list(range(len(sources)))
    return min(correct, key=lambda row: abs(len(sources[row].split()) - 11))


def _most_focused_map(translator: "Translator", sentence: str) -> Any:
    """Return the attention map of the cross-attention layer with the lowest entropy."""
    import numpy as np

    from dragoman.inspection.attention import attention_of

    maps = [each for each in attention_of(translator.subject(sentence)) if each.kind == "decoder.cross_attention"]
    return min(maps, key=lambda each: float(-(each.mean * np.log(each.mean + 1e-9)).sum()))
