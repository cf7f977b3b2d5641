"""Converts GPT-2 models from a Hugging Face folder to an `ImportedModel`, and from a model folder to a Hugging Face
folder.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dragoman.base.errors import ModelError
from dragoman.decode.sampling import GenerationConfig
from dragoman.exchange.huggingface.byte_level import (
    LIBRARY,
    ROLES,
    ByteLevelVocabulary,
    byte_level_order,
    byte_level_symbols,
    read_byte_level,
    write_byte_level,
)
from dragoman.exchange.huggingface.files import CONFIG, TOKENIZER, ImportedModel, read_json, read_tensors
from dragoman.exchange.huggingface.generation import sampling_json, sampling_section
from dragoman.exchange.huggingface.gpt2.architecture import ARCHITECTURES, config_json, model_section, read_settings
from dragoman.exchange.huggingface.gpt2.weights import TOKENS, weight_table
from dragoman.exchange.huggingface.model_folder import StoredModel, import_model, read_generation, write_folder
from dragoman.models.kinds.decoder_only import LanguageModelConfig
from dragoman.text.symbols import BOS, EOS, PAD, SPECIAL_SYMBOLS, UNK
from dragoman.text.tokenizers import TextConfig
from dragoman.text.vocabularies.gpt2 import GPT2BPEConfig, GPT2Tokenizer

_DEFAULT_END = "<|endoftext|>"


def read_gpt2(folder: Path, config: Mapping[str, Any], allow_pickle: bool) -> ImportedModel:
    """Convert a Hugging Face folder of a GPT-2 model to a model with the same logits.

    config: the content of the folder's `config.json`. Raises ModelError for a folder that is damaged or has unsupported
    features.
    """
    settings = read_settings(config, folder / CONFIG)
    vocabulary = read_byte_level(folder)
    if "eos_token" not in vocabulary.roles:  # old folders leave out what is the default of GPT-2's tokenizer
        vocabulary = replace(vocabulary, special=vocabulary.special | ({_DEFAULT_END} & vocabulary.ids.keys()))
    special = _special(vocabulary, folder)
    for name, symbol in (("eos_token_id", special[EOS]), ("bos_token_id", special[BOS] or special[EOS])):
        number = getattr(settings, name)
        if symbol is not None and number not in (None, vocabulary.ids[symbol]):
            raise ModelError(
                f"{folder}: {symbol} has the id {vocabulary.ids[symbol]}, but {name} in {CONFIG} is {number}: the "
                "files are from different models"
            )
    tokenizer = vocabulary.tokenizer(special, settings.vocab_size, folder)
    missing = [number for number, symbol in enumerate(special) if symbol is None]
    path, tensors = read_tensors(folder, allow_pickle)
    model = model_section(settings, special[BOS] is None, missing, folder / CONFIG)
    order = byte_level_order(tokenizer)
    search = sampling_section(*read_generation(folder, config), order).model_copy(
        update={"prompt_start": _starts_prompts(folder)}
    )
    text = TextConfig(subword=GPT2BPEConfig(), normalization=tokenizer.normalization)
    sections = {"model": model, "text": text, "search": search}
    table = weight_table(model, order, tokenizer.size)
    imported = import_model(
        settings.architecture or ARCHITECTURES[0], sections, tokenizer, table, tensors=tensors, path=path
    )
    if special[BOS] is None:  # for models that start from this one and have another start symbol
        embeddings = imported.parameters[TOKENS]
        embeddings[BOS] = embeddings[EOS]
    return imported


def _special(vocabulary: ByteLevelVocabulary, folder: Path) -> list[str | None]:
    """Return the symbols of padding, beginning, end and unknown words; None for those that GPT-2 does not have.

    A symbol with several roles ends texts. Raises ModelError without an end symbol.
    """
    roles = [vocabulary.roles.get(role) for role in ROLES]
    end = roles[EOS] or _DEFAULT_END
    if end not in vocabulary.special:
        raise ModelError(f"{folder}: the vocabulary has no special symbol {end!r}, which ends texts")
    special = [None if role in (None, end) or role not in vocabulary.special else role for role in roles]
    special[EOS] = end
    if special[UNK] in (special[PAD], special[BOS]):
        special[UNK] = None
    if special[PAD] is not None and special[PAD] == special[BOS]:
        special[PAD] = None
    return special


def _starts_prompts(folder: Path) -> bool:
    """Return whether Hugging Face's tokenizer adds the beginning of a text to each prompt."""
    processor = read_json(folder / LIBRARY, optional=True).get("post_processor") or {}
    steps = processor.get("processors") or [processor]  # of a sequence
    templates = [each.get("single") or [] for each in steps if each.get("type") == "TemplateProcessing"]
    adds = any("SpecialToken" in template[0] for template in templates if template)
    return adds or read_json(folder / TOKENIZER, optional=True).get("add_bos_token") is True


def write_gpt2(folder: Path, out: Path) -> None:
    """Convert a model folder to the Hugging Face folder `out`. Parameters keep their dtype.

    Raises ModelError with the settings that GPT-2 does not support, in which case nothing is written.
    """
    stored = StoredModel.load(folder)
    model, tokenizer = stored.model, stored.tokenizers.target
    assert isinstance(model, LanguageModelConfig)
    if not isinstance(tokenizer, GPT2Tokenizer):
        raise ModelError(
            f"{folder} has a {tokenizer.kind} vocabulary, but GPT-2 requires one of the kind gpt2. Only imported "
            "models and models trained with text.subword.kind=gpt2 can be exported"
        )
    order, symbols = byte_level_order(tokenizer), byte_level_symbols(tokenizer)
    missing = [number for number in range(len(SPECIAL_SYMBOLS)) if number not in order]
    content = config_json(model, len(order), missing)
    search = stored.search(GenerationConfig)
    tensors = weight_table(model, order, tokenizer.size).to_theirs(stored.parameters())
    end = order.index(EOS)
    begin = order.index(BOS) if model.start_symbol == "bos" else end
    ids = {"bos_token_id": begin, "eos_token_id": end, **({"pad_token_id": order.index(PAD)} if PAD in order else {})}
    roles = {role: symbols[order.index(number)] for number, role in enumerate(ROLES) if number in order}
    about = {"tokenizer_class": "GPT2Tokenizer", "model_max_length": content["n_positions"], **roles}
    about |= {"bos_token": symbols[begin], "add_bos_token": search.prompt_start}
    about.setdefault("unk_token", symbols[end])
    generation = {**sampling_json(search, order), **ids}

    def vocabulary(staged: Path) -> None:
        write_byte_level(staged, tokenizer, about)

    write_folder(folder, out, content | ids, tensors, write_vocabulary=vocabulary, generation=generation)
