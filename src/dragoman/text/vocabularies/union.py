"""All vocabulary kinds. To add a kind, add a file to this folder and its settings to `Kinds`."""

import json
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from dragoman.base.errors import ConfigError, ModelError
from dragoman.text.normalization import Normalization
from dragoman.text.symbols import SPECIAL_SYMBOLS, check_stored
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.vocabularies.bert import BertWordPieceConfig
from dragoman.text.vocabularies.bpe import BPEConfig
from dragoman.text.vocabularies.character import CharacterConfig
from dragoman.text.vocabularies.feature_vectors import VectorSequences
from dragoman.text.vocabularies.foreign import recognise_vocabulary
from dragoman.text.vocabularies.gpt2 import GPT2BPEConfig
from dragoman.text.vocabularies.sentencepiece import SentencePieceConfig
from dragoman.text.vocabularies.subword_nmt import SubwordNMTConfig
from dragoman.text.vocabularies.t5 import T5UnigramConfig
from dragoman.text.vocabularies.unigram import UnigramConfig
from dragoman.text.vocabularies.whitespace import WhitespaceConfig
from dragoman.text.vocabularies.word import WordConfig
from dragoman.text.vocabularies.wordpiece import WordPieceConfig

Kinds = (
    BPEConfig
    | GPT2BPEConfig
    | SubwordNMTConfig
    | WordPieceConfig
    | BertWordPieceConfig
    | UnigramConfig
    | SentencePieceConfig
    | T5UnigramConfig
    | WordConfig
    | WhitespaceConfig
    | CharacterConfig
)
SubwordConfig = Annotated[Kinds, Field(discriminator="kind")]

_TAGS = TypeAdapter(list[Annotated[str, AfterValidator(check_stored)]])
_TOKENIZERS: dict[str, type[Tokenizer]] = {
    VectorSequences.kind: VectorSequences,
    **{config.tokenizer.kind: config.tokenizer for config in Kinds.__args__},
}


def _is_foreign(document: dict[str, Any]) -> bool:
    """Return whether a document without a kind is not a byte-level BPE with dragoman's special symbols."""
    model = document.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) and model.get("type") == "BPE" else None
    return not isinstance(vocabulary, dict) or not vocabulary.keys() >= set(SPECIAL_SYMBOLS)


def load_tokenizer(path: Path) -> Tokenizer:
    """Load a tokenizer from a file. Raises ModelError if it is missing, damaged or of an unknown kind."""
    path = Path(path)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"Cannot read the tokenizer {path}: {error}. Is the model folder complete?") from error
    except (ValueError, RecursionError) as error:
        if (recognised := recognise_vocabulary(path)) is not None:
            raise ModelError(
                f"{path} is {recognised}, not a dragoman tokenizer. Copy the model folder again from its origin."
            ) from error
        raise ModelError(f"The tokenizer {path} is damaged ({error}). Restore it from a copy.") from error
    if isinstance(document, dict) and "kind" not in document and _is_foreign(document):
        recognised = recognise_vocabulary(path) or "a JSON file of another tool"
        raise ModelError(
            f"{path} is {recognised}, not a dragoman tokenizer. Convert the model with "
            "`dragoman import`, or copy the model folder again from its origin."
        )
    # Files of byte-level BPE are those of the library, which do not name a kind.
    kind = document.get("kind", BPEConfig.tokenizer.kind) if isinstance(document, dict) else None
    if kind not in _TOKENIZERS:
        raise ModelError(
            f"{path} is not a dragoman tokenizer. Unknown kind {kind!r}: expected one of {', '.join(_TOKENIZERS)}. "
            "Copy the model folder again from its origin, or update dragoman."
        )
    tags, normalization = document.pop("tags", []), document.pop("normalization", "none")
    start, prefix = document.pop("start", []), document.pop("prefix", "")
    if normalization not in get_args(Normalization):
        raise ModelError(f"The tokenizer {path} is damaged (normalization: {normalization!r}). Restore it from a copy.")
    if not isinstance(prefix, str):
        raise ModelError(f"The tokenizer {path} is damaged (prefix: {prefix!r}). Restore it from a copy.")
    try:
        checked, start = _TAGS.validate_python(tags), _TAGS.validate_python(start)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise ModelError(f"The tokenizer {path} is damaged (tags: {reason}). Restore it from a copy.") from error
    tokenizer = _TOKENIZERS[kind].read(document, path).with_tags(checked).with_normalization(normalization)
    try:
        return tokenizer.with_start(start).with_prefix(prefix)
    except ConfigError as error:
        raise ModelError(f"The tokenizer {path} is damaged (start: {error}). Restore it from a copy.") from error
