"""The systems and corpora of the history.

To add a system, add it to `STATISTICAL`, `TRANSLATORS` or `LANGUAGE_MODELS`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

RECIPES = Path(__file__).resolve().parents[2] / "recipes"


@dataclass(frozen=True)
class System:
    """A system that one `dragoman train` command trains.

    name: short name. title: name in the table and the picture. source: publication. recipe: the recipe. settings:
    overrides of the recipe. is_timed: whether the training has a time limit. documents: how a language model divides
    the test text into documents.
    """

    name: str
    title: str
    source: str
    recipe: Path
    settings: tuple[str, ...] = ()
    is_timed: bool = True
    documents: str = "file"


@dataclass(frozen=True)
class Corpus:
    """A corpus with its test set, which are files below $DRAGOMAN_DATA.

    measure: bleu or perplexity. test: source and reference or one file with tab-separated pairs (bleu), or the text
    (perplexity).
    """

    name: str
    title: str
    measure: str
    test: tuple[str, ...]
    systems: tuple[System, ...]


ADAM = ("train.optimiser={kind: adam}", "train.schedule.peak=0.002")
"""Recurrent models are trained with Adam, because the default rate of Muon suits Transformers (docs/EXPERIMENTS.md)."""
RNN = (
    "model={preset: null, width: 256, dropout: 0.3, "
    "encoder: {kind: recurrent, cell: lstm, layers: 2, bidirectional: false}, "
    "decoder: {kind: recurrent, cell: lstm, layers: 2, attention: null}}"
)


def _sections(recipe: str, *names: str) -> tuple[str, ...]:
    """Return sections of a recipe as overrides of a recipe of the same task."""
    settings: dict[str, Any] = yaml.safe_load((RECIPES / recipe).read_text(encoding="utf-8"))
    return tuple(
        f"{name}={yaml.safe_dump(settings[name], default_flow_style=True, width=10**6).strip()}" for name in names
    )


STATISTICAL = (
    ("dictionary", "Dictionary", "Brown et al. 1993"),
    ("word-based", "Word-based", "Brown et al. 1993"),
    ("phrase-based", "Phrase-based", "Koehn et al. 2003"),
)
"""The name, title and source of each statistical translation system."""

TRANSLATORS = (
    ("rnn", "RNN", "Sutskever et al. 2014", (RNN, *ADAM)),
    ("rnn-attention", "RNN + attention", "Bahdanau et al. 2015", ("model={preset: rnn, dropout: 0.3}", *ADAM)),
    (
        "deep-att",
        "Deep-Att + PosUnk",
        "Zhou et al. 2016",
        (*_sections("multi30k-deep-att.yaml", "text", "model", "search"), *ADAM),
    ),
    ("gnmt", "GNMT", "Wu et al. 2016", (*_sections("multi30k-gnmt.yaml", "model", "search"), *ADAM)),
    ("bytenet", "ByteNet", "Kalchbrenner et al. 2016", (*_sections("multi30k-bytenet.yaml", "model"), *ADAM)),
    ("moe", "MoE", "Shazeer et al. 2017", (*_sections("multi30k-moe.yaml", "model", "search"), *ADAM)),
    ("convs2s", "ConvS2S", "Gehring et al. 2017", _sections("multi30k-convs2s.yaml", "model")),
    ("transformer", "Transformer", "Vaswani et al. 2017", ()),
)
"""The name, title, source and settings of each neural translation system, in the order of publication.

Every system has the vocabulary of the corpus recipe, except Deep-Att, which has a vocabulary of words for PosUnk.
"""

LANGUAGE_MODELS = (
    (
        "lstm",
        "LSTM",
        "Sundermeyer et al. 2012",
        ("model={preset: lstm}", "data.block=128", "train.optimiser.kind=adam", "train.schedule.peak=0.003"),
    ),
    ("transformer", "Transformer", "Vaswani et al. 2017", ()),
)
"""As `TRANSLATORS`, for language models."""

NGRAM = System(
    "5-gram",
    "5-gram, Kneser–Ney",
    "Chen & Goodman 1999",
    RECIPES / "wikitext-2-5gram.yaml",
    is_timed=False,
    documents="line",
)
"""An n-gram does not extend beyond a line, whereas the context of the neural models does."""


def _statistical(*settings: str) -> tuple[System, ...]:
    """Return the statistical systems, which are trained by the recipe of Multi30k with these overrides."""
    recipe = RECIPES / "multi30k-phrase-based.yaml"
    return tuple(
        System(
            name,
            title,
            source,
            recipe,
            (f"model.method.kind={name.replace('-', '_')}", "threads=1", *settings),
            is_timed=False,
        )
        for name, title, source in STATISTICAL
    )


def _systems(recipe: str, rows: tuple[tuple[str, str, str, tuple[str, ...]], ...]) -> tuple[System, ...]:
    return tuple(System(name, title, source, RECIPES / recipe, settings) for name, title, source, settings in rows)


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "multi30k",
            "Multi30k, English–German",
            "bleu",
            ("multi30k/test_2016_flickr.en.gz", "multi30k/test_2016_flickr.de.gz"),
            (*_statistical(), *_systems("multi30k-en-de.yaml", TRANSLATORS)),
        ),
        Corpus(
            "tatoeba",
            "Tatoeba, English–German",
            "bleu",
            ("tatoeba/test.en-de.tsv.gz",),
            (
                *_statistical(
                    "data.train={pairs: ${DRAGOMAN_DATA}/tatoeba/train.en-de.tsv.gz}",
                    "data.valid={pairs: ${DRAGOMAN_DATA}/tatoeba/dev.en-de.tsv.gz}",
                    "data.licence=CC-BY 2.0 FR (Tatoeba)",
                ),
                *_systems("tatoeba-en-de.yaml", TRANSLATORS),
            ),
        ),
        Corpus(
            "wikitext-2",
            "WikiText-2",
            "perplexity",
            ("wikitext-2/wiki.valid.tokens.gz",),
            (NGRAM, *_systems("wikitext-2.yaml", LANGUAGE_MODELS)),
        ),
    )
}
