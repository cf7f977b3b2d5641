"""The addresses of settings in the reference, which `dragoman settings` prints below a group or a setting."""

import re
from collections.abc import Mapping, Sequence

from dragoman.base.settings.reference import Section
from dragoman.base.settings.shared_groups import ListedPaths

FOLDER = "docs/reference/settings"
INDEX = "index"
PAGES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "train": ("Training: limits, checkpoints, learning rate, optimiser, GPU", ("train",)),
    "objectives": ("Training objectives and teacher forcing", ("train.objective", "train.teacher_forcing")),
    "data": ("Data: corpora, cleaning, batches", ("data",)),
    "aligners": ("Word aligners and shortlists", ("train.objective.aligner", "data.shortlist", "alignment")),
    "text": ("Text: subwords and vocabularies", ("text",)),
    "model": ("Model: encoder, decoder, positions, normalisation, dropout", ("model",)),
    "attention": (
        "Attention and its scorers",
        ("model.encoder.attention", "model.decoder.attention", "model.decoder.cross_attention"),
    ),
    "heads": ("Heads: classification, tagging, parsing, masked tokens", ("model.head", "model.generator")),
    "estimation": (
        "n-gram and statistical translation models",
        ("smoothing", "model.method", "model.sizes", "tuning"),
    ),
    "search": ("Search: beam, length penalty, sampling", ("search",)),
    "tasks": ("Several tasks in one run", ("auxiliary_tasks", "tasks", "mixing")),
}
"""Titles of the pages, and the paths of the groups on them, with all groups inside that no longer path has."""


def addresses(path: str, listed: Sequence[Section], paths: ListedPaths) -> list[str]:
    """Return the pages, with anchors, of a group or a setting of a kind of run. Empty path: the index.

    There are several if the kinds of a group are listed at different paths. listed: the sections of the run.
    """
    if not path:
        return [f"{FOLDER}/{INDEX}.md"]
    parent, _, name = path.rpartition(".")
    around = [each for each in listed if each.path == parent and any(row.key == path for row in each.settings)]
    keys = [paths.path_of(each) if name == "kind" else join_keys(paths.path_of(each), name) for each in around]
    keys += [paths.path_of(each) for each in listed if each.path == path]
    return [f"{FOLDER}/{_page_with(key, paths)}.md#{anchor_of(key)}" for key in dict.fromkeys(keys)]


def _page_with(key: str, paths: ListedPaths) -> str:
    """Return the name of the page of a setting: that of the group around it, unless its value is a listed group."""
    own, around = page_of(key), page_of(key.rpartition(".")[0])
    return own if own == around or key in paths else around


def page_of(path: str) -> str:
    """Return the name of the page of a group."""
    fitting = [
        (len(start), name)
        for name, (_, starts) in PAGES.items()
        for start in starts
        if f"{path}.".startswith(f"{start}.")
    ]
    return max(fitting)[1] if fitting else INDEX


def anchor_of(path: str) -> str:
    """Return the anchor that code hosts and the site give to the heading of a path."""
    return re.sub(r"[^\w\- ]", "", path.lower()).replace(" ", "-") or "the-top-level"


def join_keys(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
