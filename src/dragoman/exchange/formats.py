"""Imports models from the formats of other programs (`import_model`), and exports models to such formats (`export`).

n-gram models in ARPA format are files instead of folders (`exchange.arpa`).

To support the import of a format, add a function to `READERS` that converts a folder to an `ImportedModel`. Its key is
the `model_type` in the folder's `config.json`. `import_model` first checks the folder, and finally writes the model
folder. To support the export to a format, add a function to `WRITERS` that writes a new folder from a model folder.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast, get_args

import torch

from dragoman.base.errors import ConfigError, ModelError, reject_options
from dragoman.base.files import check_new_folder
from dragoman.base.log import quietly
from dragoman.base.settings.yaml import dump_yaml
from dragoman.checkpoint.folder import check_serves, load_model_folder, write_model_folder
from dragoman.exchange.arpa import export_arpa, import_arpa
from dragoman.exchange.ctranslate2.folder import Quantization
from dragoman.exchange.ctranslate2.folder import export as export_to_ctranslate2
from dragoman.exchange.huggingface.bart.conversion import read_bart, write_bart
from dragoman.exchange.huggingface.bert.conversion import read_bert, write_bert
from dragoman.exchange.huggingface.files import CONFIG, ImportedModel, check_folder, read_json
from dragoman.exchange.huggingface.gpt2.conversion import read_gpt2, write_gpt2
from dragoman.exchange.huggingface.hub import HubModel, is_hub_name
from dragoman.exchange.huggingface.m2m100.conversion import between, read_m2m100, write_m2m100
from dragoman.exchange.huggingface.marian.conversion import read_marian, write_marian
from dragoman.exchange.huggingface.model_folder import add_prefix
from dragoman.exchange.huggingface.t5.conversion import read_t5, write_t5
from dragoman.models.kinds.registry import LANGUAGE_MODEL, NGRAM_MODEL, PREDICTION_MODEL, TRANSLATION_MODEL, ModelKind
from dragoman.text.tokenizers import Tokenizers

MULTILINGUAL = "m2m_100"
"""The family of models that translate between many languages, of which an import chooses two."""

READERS: Mapping[str, Callable[[Path, Mapping[str, Any], bool], ImportedModel]] = {
    "marian": read_marian,
    "bert": read_bert,
    "gpt2": read_gpt2,
    "bart": read_bart,
    "t5": read_t5,
    MULTILINGUAL: read_m2m100,
}
"""Functions that convert a Hugging Face folder, by `model_type`.

Their arguments are the folder, the content of its `config.json`, and `allow_pickle`.
"""


def import_model(
    folder: str | Path,
    out: str | Path,
    *,
    allow_pickle: bool = False,
    vocabulary_of: str | Path | None = None,
    source_prefix: str | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    quiet: bool = False,
) -> Path:
    r"""Convert a model of Hugging Face or an n-gram model to the model folder `out`.

    Returns `out`.

    folder: a Hugging Face folder; the name of a model on the Hugging Face Hub, such as ORG/MODEL or ORG/MODEL@REVISION,
    unless there is a folder of this name; or an ARPA file of an n-gram model, plain or compressed. vocabulary_of: a
    model folder whose target vocabulary an ARPA file uses (default: a vocabulary of the file's words, separated by
    spaces). source_prefix: words that precede every source text, such as "translate English to German:" for a T5 model
    (default: `prefix` in `config.json`). source_language, target_language: the languages between which a multilingual
    model, such as NLLB, translates in `out`: codes such as `sw` or the model's own, such as `swh_Latn` (default: those
    in the settings of its tokenizer). Parameters keep their dtype. allow_pickle: read parameters from a pickle file if
    the folder has no other file of parameters. Raises ModelError if the folder is damaged, its model type is not
    supported or the model cannot be downloaded, and ConfigError if `out` exists, a language is missing or a library is
    not installed. In these cases, `out` is not written.

    >>> from dragoman import import_model
    >>> from pathlib import Path
    >>> entries = ["-99 <s>", "-0.6 </s>", "-0.6 dog", "-0.6 <unk>"]
    >>> lines = ["\\data\\", "ngram 1=4", "", "\\1-grams:", *entries, "", "\\end\\"]
    >>> Path("dog.arpa").write_text("\n".join(lines)) > 0
    True
    >>> import_model("dog.arpa", "runs/ngrams")
    PosixPath('runs/ngrams')
    """
    folder, out = Path(folder), Path(out)
    languages = {"--from": source_language, "--to": target_language}
    with quietly(quiet):
        check_new_folder(out)
        if folder.is_file():
            options = {"--allow-pickle": allow_pickle or None, "--source-prefix": source_prefix}
            reject_options({**options, **languages}, "with a Hugging Face folder")
            import_arpa(folder, out, None if vocabulary_of is None else Path(vocabulary_of))
            return out
        reject_options({"--vocabulary-of": vocabulary_of}, "with an ARPA file")
        hub = HubModel.fetch(str(folder), allow_pickle) if is_hub_name(folder) else None
        folder = folder if hub is None else hub.folder
        check_folder(folder)
        config = read_json(folder / CONFIG)
        kind = config.get("model_type")
        read = READERS.get(kind) if isinstance(kind, str) else None
        if read is None:
            raise ModelError(
                f"{folder / CONFIG} describes a model of type {kind!r}, but only {', '.join(READERS)} can be imported"
            )
        if kind != MULTILINGUAL:
            reject_options(languages, "with a model that translates between many languages, such as NLLB")
        model = add_prefix(read(folder, config, allow_pickle), config, source_prefix, folder / CONFIG)
        if kind == MULTILINGUAL:
            model = between(model, folder, source_language, target_language)
        sections = dump_yaml({name: section.model_dump(mode="json") for name, section in model.sections.items()})
        meta = model.meta if hub is None else hub.describe(model.meta)
        write_model_folder(out, model.parameters, sections, model.tokenizers, meta)
    return out


def export(
    model: str | Path,
    out: str | Path,
    to: str = "ctranslate2",
    *,
    quantization: str | None = None,
    dialect: str | None = None,
    quiet: bool = False,
) -> Path:
    """Convert a model folder to a format of another program, in the new folder `out`; returns `out`.

    to: `ctranslate2`, whose folders `Translator.load` can also load; `huggingface`, for the class of Hugging Face that
    represents the model, or the name of its family: `marian`, `bert`, `gpt2`, `bart` or `t5`; or `arpa`, for an n-gram
    model, where `out` is a new file, compressed by its suffix. quantization: the storage type of weights in
    CTranslate2 (default: float32). dialect: the program whose ARPA format is written: kenlm (default), srilm, irstlm or
    cmu. Raises ModelError for a model that the other program cannot compute, and ConfigError if `out` exists or the
    format is unknown.

    >>> from dragoman import export
    >>> export("runs/ende", "runs/ende-ct2", to="ctranslate2", quantization="int8")
    PosixPath('runs/ende-ct2')
    """
    model, out = Path(model), Path(out)
    if to not in (*WRITERS, HUGGING_FACE):
        raise ConfigError(f"unknown format {to!r}: expected one of {', '.join((*WRITERS, HUGGING_FACE))}")
    with quietly(quiet):
        to = _hugging_face_format(model) if to == HUGGING_FACE else to
        reject_options({"--quantization": quantization if to != "ctranslate2" else None}, "with --to ctranslate2")
        reject_options({"--dialect": dialect if to != "arpa" else None}, "with --to arpa")
        _check_kind(model, to)
        WRITERS[to](model, out, quantization or dialect)
    return out


def _write_ctranslate2(model: Path, out: Path, quantization: str | None) -> None:
    storage_type, storage_types = quantization or "float32", get_args(Quantization)
    if storage_type not in storage_types:
        raise ConfigError(f"unknown quantization {storage_type!r}: expected one of {', '.join(storage_types)}")
    loaded = load_model_folder(model, torch.device("cpu"), "export")
    export_to_ctranslate2(loaded, model, out, cast(Quantization, str(storage_type)))


def _folder_writer(write: Callable[[Path, Path], None]) -> Callable[[Path, Path, str | None], None]:
    """Return a function of `WRITERS` for a format of folders without further options."""

    def write_new(model: Path, out: Path, _: str | None) -> None:
        check_new_folder(out)
        write(model, out)

    return write_new


def _write_arpa(model: Path, out: Path, dialect: str | None) -> None:
    if out.exists():
        raise ConfigError(f"{out} already exists: choose another --out, or remove it")
    export_arpa(model, out, dialect or "kenlm")


WRITERS: Mapping[str, Callable[[Path, Path, str | None], None]] = {
    "ctranslate2": _write_ctranslate2,
    "marian": _folder_writer(write_marian),
    "bert": _folder_writer(write_bert),
    "gpt2": _folder_writer(write_gpt2),
    "bart": _folder_writer(write_bart),
    "t5": _folder_writer(write_t5),
    MULTILINGUAL: _folder_writer(write_m2m100),
    "arpa": _write_arpa,
}
"""Functions that write a new folder or file, by format.

Their arguments are the model folder, the new path, and the quantization or the dialect (None for the default).
"""


_KINDS: Mapping[str, ModelKind] = {
    "ctranslate2": TRANSLATION_MODEL,
    "marian": TRANSLATION_MODEL,
    "bert": PREDICTION_MODEL,
    "gpt2": LANGUAGE_MODEL,
    "bart": TRANSLATION_MODEL,
    "t5": TRANSLATION_MODEL,
    MULTILINGUAL: TRANSLATION_MODEL,
    "arpa": NGRAM_MODEL,
}
"""The kind of model that each format represents."""

HUGGING_FACE = "huggingface"
"""The name of the format of Hugging Face that represents a model, whichever it is."""


def _hugging_face_format(model: Path) -> str:
    """Return the family of Hugging Face that represents a model. Raises ModelError if no family does."""
    kind = check_serves(model, "export")
    families = [name for name, each in _KINDS.items() if each is kind and name in READERS]
    if not families:
        raise ModelError(f"{model} {kind.refusal('export')}")
    if kind is TRANSLATION_MODEL:
        target = Tokenizers.load(model).target
        other = MULTILINGUAL if target.kind == "sentencepiece" and target.start else "marian"
        return {"gpt2": "bart", "t5": "t5"}.get(target.kind, other)
    return families[0]


def _check_kind(model: Path, to: str) -> None:
    """Raise ModelError unless the model is of the kind that the format represents."""
    kind = check_serves(model, "export")
    if kind is not _KINDS[to]:
        others = [name for name, each in _KINDS.items() if each is kind]
        raise ModelError(
            f"{model} is {kind.noun}, but the format {to} is for {_KINDS[to].title}s: use --to {' or '.join(others)}"
            if others
            else f"{model} {kind.refusal('export')}"
        )
