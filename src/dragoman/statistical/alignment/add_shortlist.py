"""`shortlist` trains a shortlist on a parallel text, and adds it to the folder of a translation model."""

from pathlib import Path

from dragoman.base.errors import ConfigError
from dragoman.base.log import info, quietly
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.checkpoint.folder import SHORTLIST, check_serves
from dragoman.data.corpora.inputs import Lines, read_parallel
from dragoman.statistical.alignment.shortlist import Shortlist, ShortlistConfig, provenance
from dragoman.text.symbols import placeholder_symbols
from dragoman.text.tokenizers import Tokenizers


def shortlist(
    model: str | Path,
    source: Lines,
    target: Lines,
    *,
    overrides: Overrides = (),
    threads: int | None = None,
    quiet: bool = False,
) -> Shortlist:
    """Train a shortlist and store it in a model folder, as `dragoman shortlist` does.

    Requests with `search.shortlist` then generate only tokens in the shortlist of their source. model: the folder of a
    translation model. source, target: the training text, files (plain or compressed) or lists of texts; text n of one
    corresponds to text n of the other. overrides: settings of `ShortlistConfig` by dotted key. threads: None for one
    per core; the result does not depend on it.

    Raises ConfigError for invalid settings, for a model whose sources are vectors and for a folder that has a
    shortlist; DataError for unequal numbers of texts and for blank texts; ModelError if the folder is not that of a
    translation model.

    >>> from dragoman import Translator, shortlist
    >>> added = shortlist("runs/ende", "train.en", "train.de")
    >>> Translator.load("runs/ende").translate(["The dog sleeps."], search={"shortlist": True})
    ['...']
    """
    config = load_settings({}, all_overrides(overrides), ShortlistConfig)
    folder = Path(model)
    check_serves(folder, "translate")
    if (folder / SHORTLIST).exists():
        raise ConfigError(f"{folder} has a shortlist: to replace it, remove {folder / SHORTLIST} first")
    tokenizers = Tokenizers.load(folder)
    check_text(tokenizers)
    with quietly(quiet):
        sources, targets = read_parallel(("source", source), ("target", target))
        trained = Shortlist.train(
            tokenizers.source.encode_batch(sources),
            tokenizers.target.encode_batch(targets),
            tokenizers.sizes,
            config,
            placeholder_tokens(tokenizers),
            threads=threads,
            provenance=provenance(config, None),
        )
        trained.save(folder)
        info(f"The shortlist is in {folder / SHORTLIST}. Use it with search.shortlist=true")
    return trained


def check_text(tokenizers: Tokenizers) -> None:
    """Raise ConfigError if the sources are vectors."""
    if tokenizers.reads_vectors:
        raise ConfigError(
            "the sources of this model are vectors, which have no tokens that a shortlist could translate"
        )


def placeholder_tokens(tokenizers: Tokenizers) -> list[int]:
    """Return the ids of the placeholders in the target vocabulary, which every shortlist contains."""
    return tokenizers.target.tag_ids(placeholder_symbols(tokenizers.target.tags))
