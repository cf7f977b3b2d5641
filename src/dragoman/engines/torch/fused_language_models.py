"""`FusedLanguageModels`: language models for shallow fusion, loaded on first use."""

from collections.abc import Sequence
from pathlib import Path

import torch

from dragoman.base.errors import ModelError
from dragoman.checkpoint.folder import load_model_folder
from dragoman.decode.rules.fusion import FusionConfig, LanguageModelFusion
from dragoman.models.interface import Decoder
from dragoman.models.kinds.ngram import NgramModel
from dragoman.statistical.ngrams.word_fusion import WordFusion, WordScorer, divides_words
from dragoman.text.tokenizers import Tokenizers

FusionRule = LanguageModelFusion | WordFusion


class FusedLanguageModels:
    """Loads language models that support `fuse`, for a translation model with these tokenizers, on a device.

    A model with the target vocabulary of the translation model is fused token by token. An n-gram model with another
    vocabulary, such as words, is fused word by word.
    """

    def __init__(self, tokenizers: Tokenizers, device: torch.device) -> None:
        self._tokenizers, self._device = tokenizers, device
        self._decoders: dict[Path, Decoder] = {}
        self._word_scorers: dict[Path, WordScorer] = {}

    def rule(self, configs: Sequence[FusionConfig | None]) -> FusionRule | None:
        """Return the fusion rule for a batch of sentences; None if no sentence has a language model.

        configs: one per sentence, None for a sentence without fusion; all configs name the same language model. Raises
        ModelError if the folder does not contain a language model, or if its vocabulary differs and the model cannot be
        fused word by word.
        """
        present = [config for config in configs if config is not None]
        if not present:
            return None
        (folder,) = {config.language_model for config in present}
        weights = [config.weight for config in present]
        if folder not in self._decoders and folder not in self._word_scorers:
            self._load(folder)
        if folder in self._word_scorers:
            return WordFusion(self._word_scorers[folder], weights)
        return LanguageModelFusion(self._decoders[folder], weights)

    def _load(self, folder: Path) -> None:
        loaded = load_model_folder(folder, self._device, "fuse")
        fused, target = loaded.tokenizers.target, self._tokenizers.target
        if fused.fingerprint == target.fingerprint:
            self._decoders[folder] = loaded.model.decoder
        elif isinstance(loaded.model, NgramModel) and divides_words(target):
            self._word_scorers[folder] = WordScorer(loaded.model, fused, target)
        else:
            raise ModelError(
                f"the vocabulary of the language model {folder} ({fused.size:,} entries) differs from the target "
                f"vocabulary of the translation model ({target.size:,}): train the language model with "
                "data.vocabulary_of naming the translation model, or use it for reranking (dragoman tune)"
            )
