"""`FusedLanguageModels`: language models for shallow fusion, loaded on first use."""

from collections.abc import Sequence
from pathlib import Path

import torch

from dragoman.base.errors import ModelError
from dragoman.checkpoint.folder import load_model_folder
from dragoman.decode.rules.fusion import FusionConfig, LanguageModelFusion
from dragoman.models.interface import Decoder
from dragoman.text.tokenizers import Tokenizers


class FusedLanguageModels:
    """Loads language models that support `fuse`, for a translation model with these tokenizers, on a device."""

    def __init__(self, tokenizers: Tokenizers, device: torch.device) -> None:
        self._tokenizers, self._device = tokenizers, device
        self._decoders: dict[Path, Decoder] = {}

    def rule(self, configs: Sequence[FusionConfig | None]) -> LanguageModelFusion | None:
        """Return the fusion rule for a batch of sentences; None if no sentence has a language model.

        configs: one per sentence, None for a sentence without fusion; all configs name the same language model. Raises
        ModelError if the folder does not contain a language model, or if its vocabulary differs.
        """
        present = [config for config in configs if config is not None]
        if not present:
            return None
        (folder,) = {config.language_model for config in present}
        return LanguageModelFusion(self._decoder(folder), [config.weight for config in present])

    def _decoder(self, folder: Path) -> Decoder:
        if folder not in self._decoders:
            loaded = load_model_folder(folder, self._device, "fuse")
            fused, target = loaded.tokenizers.target, self._tokenizers.target
            if fused.fingerprint != target.fingerprint:
                raise ModelError(
                    f"the vocabulary of the language model {folder} ({fused.size:,} entries) differs from the target "
                    f"vocabulary of the translation model ({target.size:,}): train the language model with "
                    "data.vocabulary_of naming the translation model, or use it for reranking (dragoman tune)"
                )
            self._decoders[folder] = loaded.model.decoder
        return self._decoders[folder]
