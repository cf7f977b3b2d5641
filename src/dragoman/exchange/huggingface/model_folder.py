"""What the families have in common: the end of an import, and dragoman's model folders as the source of an export."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from dragoman.base.errors import ConfigError, ModelError, reject_options
from dragoman.base.files import atomic_folder
from dragoman.base.log import info, warn
from dragoman.base.settings.config import Config
from dragoman.base.settings.load import parse_settings
from dragoman.checkpoint.card.markdown import with_section
from dragoman.checkpoint.card.metadata import LIBRARY
from dragoman.checkpoint.folder import CARD, CONFIG, PARAMETERS, parse_folder_model, read_config, validate
from dragoman.checkpoint.meta import Meta
from dragoman.checkpoint.tensors import load_tensors, model_parameters, read_shapes, save_tensors
from dragoman.exchange.huggingface.files import CONFIG as THEIR_CONFIG
from dragoman.exchange.huggingface.files import GENERATION, ImportedModel, read_json, write_json
from dragoman.exchange.huggingface.files import PARAMETERS as THEIR_PARAMETERS
from dragoman.exchange.huggingface.settings import C
from dragoman.exchange.huggingface.weights import WeightTable
from dragoman.models.initialisation import without_storage
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizers import TextConfig, Tokenizers

PREFIX = "prefix"
"""The key of `config.json` for the words that precede every source text, which Hugging Face's pipelines add."""

_MAX_LISTED = 4

_USE = (
    "FOLDER is the folder of this file, or its name on the Hub. `from_pretrained(FOLDER)` of the Transformers class in "
    "`config.json` (`architectures`) loads the model, and that of `AutoTokenizer` loads its tokenizer. "
    "`dragoman export` wrote the folder, and `dragoman import` reads it."
)
"""The section of the model card of an exported folder."""


def import_model(
    architecture: str,
    sections: Mapping[str, Config],
    tokenizer: Tokenizer,
    table: WeightTable,
    *,
    tensors: Mapping[str, Tensor],
    path: Path,
) -> ImportedModel:
    """Return an imported model with one vocabulary, and warn of tensors that it does not use.

    A model with an encoder and a decoder, such as a summarizer, reads texts of several sentences as a whole.

    architecture: name of Hugging Face's class. sections: the sections of `config.yaml` by name, among them `model`.
    path: the file of the tensors. Raises ModelError if the tensors do not fit the model.
    """
    model: Any = sections["model"]
    tokenizers = Tokenizers(tokenizer, tokenizer)
    parameters = table.to_ours(tensors, expected_parameters(model, tokenizers), path)
    if unused := table.unused_names(tensors):
        more = f" and {len(unused) - _MAX_LISTED} more" if len(unused) > _MAX_LISTED else ""
        warn(
            f"{path}: a {architecture} does not use the tensors {', '.join(unused[:_MAX_LISTED])}{more}, so they are "
            "not imported"
        )
    meta = origin_meta(architecture, path).model_copy(update={"whole_texts": isinstance(model, ModelConfig)})
    return ImportedModel(sections, tokenizers, parameters, meta)


def read_generation(folder: Path, config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Path]:
    """Return the generation settings of a Hugging Face folder and the file that contains them.

    Older folders have them in `config.json`, whose content is `config`. Raises ModelError for a damaged file, and if
    the files disagree on the symbols that start or end an output.
    """
    path = folder / GENERATION
    content = read_json(path, optional=True)
    if not content:
        return config, folder / THEIR_CONFIG
    for name in ("decoder_start_token_id", "eos_token_id"):
        here, there = content.get(name), config.get(name)
        if None not in (here, there) and here not in (there, [there]):
            raise ModelError(f"{path} has {name} {here}, but {folder / THEIR_CONFIG} has {there}: the files disagree")
    return content, path


def add_prefix(model: ImportedModel, config: Mapping[str, Any], prefix: str | None, path: Path) -> ImportedModel:
    """Return an imported model in which a prefix precedes every source text.

    config: the content of `config.json`, the file `path`. prefix: None for the prefix that the file contains, if any.
    Raises ConfigError for a prefix if the model does not translate.
    """
    text = model.sections["text"]
    assert isinstance(text, TextConfig)
    if not isinstance(model.sections["model"], ModelConfig):
        reject_options({"--source-prefix": prefix}, "with a model that has an encoder and a decoder")
        return model
    stored, tasks = config.get(PREFIX), config.get("task_specific_params")
    chosen = (stored if isinstance(stored, str) else "") if prefix is None else prefix
    if not chosen.strip() and prefix is None and isinstance(tasks, dict):
        given = [
            each[PREFIX] for each in tasks.values() if isinstance(each, dict) and isinstance(each.get(PREFIX), str)
        ]
        if prefixes := [repr(each.strip()) for each in given if each.strip()]:
            info(
                f"{path} names the prefixes of tasks: {', '.join(prefixes)}. The import does not add them to texts: "
                "choose one with --source-prefix, or write it in every text"
            )
    sections = {**model.sections, "text": text.model_copy(update={"source_prefix": chosen.strip()})}
    return replace(model, sections=sections, tokenizers=model.tokenizers.with_source_prefix(chosen))


def write_folder(
    source: Path,
    out: Path,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    *,
    write_vocabulary: Callable[[Path], None],
    generation: Mapping[str, Any] | None = None,
) -> None:
    """Write a Hugging Face folder, completely or not at all.

    source: the model folder, whose card the new folder gets. config: the content of `config.json` without the dtype of
    the tensors. write_vocabulary: writes the files of the vocabulary into a folder. generation: the content of
    `generation_config.json`; None: the model has none.
    """
    with atomic_folder(out) as staged:
        write_json(staged / THEIR_CONFIG, {**config, "dtype": dtype_name(tensors)})
        if generation is not None:
            write_json(staged / GENERATION, generation)
        write_vocabulary(staged)
        save_tensors(staged / THEIR_PARAMETERS, tensors, {"format": "pt"})
        if (card := exported_card(source)) is not None:
            (staged / CARD).write_text(card, encoding="utf-8")


@dataclass(frozen=True)
class StoredModel:
    """The model of a model folder, for an export. model: its settings."""

    folder: Path
    model: ModelSettings
    tokenizers: Tokenizers

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the settings of the model and its vocabularies. Raises ModelError for a damaged folder."""
        with _damage_of(folder):
            model = parse_folder_model(read_config(folder), folder)
        return cls(folder, model, Tokenizers.load(folder))

    def search(self, config: type[C]) -> C:
        """Return the search settings. Raises ModelError for damaged settings."""
        with _damage_of(self.folder):
            section = read_config(self.folder).get("search") or {}
            return parse_settings(section, config, f"in the `search` section of {self.folder / CONFIG}")

    def parameters(self) -> dict[str, Tensor]:
        """Return the parameters. Raises ModelError with a list of all differences from the settings."""
        path, sizes = self.folder / PARAMETERS, self.tokenizers.sizes
        validate(expected_parameters(self.model, self.tokenizers), read_shapes(path)[0], path, sizes)
        return load_tensors(path)[0]

    def prefix_json(self) -> dict[str, str]:
        """Return the key of `config.json` for the words that precede every source text, if there are any."""
        prefix = self.tokenizers.source.prefix
        if prefix:
            info(f"Hugging Face's tokenizers do not add the prefix {prefix!r}: add it to every text")
        return {PREFIX: f"{prefix} "} if prefix else {}


@contextmanager
def _damage_of(folder: Path) -> Iterator[None]:
    """Raise ModelError in place of ConfigError."""
    try:
        yield
    except ConfigError as error:
        raise ModelError(f"{folder} cannot be loaded: {error}") from None


def expected_parameters(model: ModelSettings, tokenizers: Tokenizers) -> dict[str, Tensor]:
    """Return the parameters of a model without storage."""
    with without_storage():
        return model_parameters(model.build_for(tokenizers.sizes))


def dtype_name(tensors: Mapping[str, Tensor]) -> str:
    """Return the common dtype of tensors, as Hugging Face writes it; float32 if there are several."""
    types = {tensor.dtype for tensor in tensors.values()}
    return str(next(iter(types)) if len(types) == 1 else torch.float32).removeprefix("torch.")


def origin_meta(architecture: str, parameters: Path) -> Meta:
    """Return the metadata of an imported model, which name its class, folder and the digest of its parameters."""
    with parameters.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Meta(
        step=0, origin=f"{architecture} from {parameters.parent.resolve().name}, {parameters.name} SHA-256 {digest}"
    )


def exported_card(folder: Path) -> str | None:
    """Return the card of a model folder, changed for the Transformers library; None if the folder has no card."""
    path = Path(folder) / CARD
    if not path.is_file():
        return None
    card = path.read_text(encoding="utf-8").replace(f"\nlibrary_name: {LIBRARY}\n", "\nlibrary_name: transformers\n", 1)
    return with_section(card, "Use", [_USE])
