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
    """Language models of any kind that supports `fuse`, for a translation model with these tokenizers, on a device."""

    def __init__(self, tokenizers: Tokenizers, device: torch.device) -> None:
        self._tokenizers, self._device = tokenizers, device
        self._decoders: dict[Path, Decoder] = {}

    def rule(self, configs: Sequence[FusionConfig | None]) -> LanguageModelFusion | None:
        """Return the rule for sentences that are searched together; None if none of them has a language model.

        configs: one per sentence, None without fusion; all others name the same model. Raises ModelError for a folder
        of another kind of model, or with another vocabulary.
        """
        wanted = [config for config in configs if config is not None]
        if not wanted:
            return None
        (folder,) = {config.language_model for config in wanted}
        return LanguageModelFusion(self._decoder(folder), [config.weight for config in wanted])

    def _decoder(self, folder: Path) -> Decoder:
        if folder not in self._decoders:
            loaded = load_model_folder(folder, self._device, "fuse")
            theirs, ours = loaded.tokenizers.target, self._tokenizers.target
            if theirs.fingerprint != ours.fingerprint:
                raise ModelError(
                    f"the language model {folder} has another vocabulary ({theirs.size:,} entries) than the target of "
                    f"the translation model ({ours.size:,}), so they cannot choose tokens together: train it with "
                    "data.vocabulary_of naming the translation model, or rerank with it (dragoman tune)"
                )
            self._decoders[folder] = loaded.model.decoder
        return self._decoders[folder]
