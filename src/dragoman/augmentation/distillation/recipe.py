"""The recipe of a student: the teacher's own, with another model, which is trained as any other."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.base.errors import ConfigError, DataError
from dragoman.base.settings.load import Overrides, all_overrides, load_settings
from dragoman.checkpoint.folder import CONFIG, folder_kind
from dragoman.data.corpora.corpus import FORMS, CorpusConfig
from dragoman.tasks.translation.config import TranslationRun


def student_recipe(
    teacher: Path, student: str, out: Path, sources: Sequence[Path] = (), overrides: Overrides = ()
) -> TranslationRun:
    """The run of a student, but for the teacher's translations: `data.train` is what there is to translate.

    Data, text and search are as in the teacher's folder, the model is the preset `student`, and the loop has its usual
    settings; `overrides` come last. sources: text to translate in the place of the corpora; both sides of such a corpus
    are that text. Raises ModelError for a folder that holds no model, ConfigError for a model that does not translate
    and for settings that are wrong, DataError for files that are not there.
    """
    if "teach" not in (kind := folder_kind(teacher)).verbs:
        raise ConfigError(f"{teacher} {kind.refusal('teach')}")
    sections: dict[str, Any] = {
        "model": {"preset": student},
        "train": {"teacher": str(teacher)},
        "beside": None,
        "out": str(out),
    }
    if sources:
        sections["data.train"] = [{"source": str(path), "target": str(path)} for path in sources]
    given = [f"{name}={json.dumps(value)}" for name, value in sections.items()]
    run = load_settings(teacher / CONFIG, all_overrides(given, overrides), TranslationRun)
    if run.text.vectors is not None:
        raise ConfigError(f"{teacher} reads feature vectors: only a model that reads text can be distilled")
    _check_there(run, teacher)
    return run


def _check_there(run: TranslationRun, teacher: Path) -> None:
    for key, path in (*_files("data.train", run.data.train), *_files("data.valid", run.data.valid)):
        if not path.exists():
            instead = ", or translate any text of the source language: --source FILE" if ".train" in key else ""
            raise DataError(
                f"there is no file {path}, which is {key} in {teacher / CONFIG}. If it has moved, say where it is now: "
                f"{key}=FILE{instead}"
            )


def _files(key: str, corpora: CorpusConfig | Sequence[CorpusConfig]) -> Iterator[tuple[str, Path]]:
    """Each file with its setting."""
    if not isinstance(corpora, CorpusConfig):
        for number, corpus in enumerate(corpora):
            yield from _files(f"{key}.{number}", corpus)
        return
    for name in ("source", "target", *FORMS):
        if (path := getattr(corpora, name)) is not None:
            yield f"{key}.{name}", path
