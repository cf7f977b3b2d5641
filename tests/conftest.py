"""Fixtures that several kinds of tests share."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder with random parameters and a vocabulary of 300: it translates, though to nonsense. Read only."""
    import torch

    from dragoman.base.yaml import dump_yaml
    from dragoman.checkpoint.folder import model_parameters, write_model_folder
    from dragoman.checkpoint.meta import Meta
    from dragoman.models.build import ModelConfig, build_model
    from dragoman.text.bpe import BPEConfig
    from dragoman.text.tokenizers import TextConfig, train_tokenizers

    text = ["A dog runs over the green grass .", "Two men sleep .", "The child sees a big white horse ."]
    tokenizers = train_tokenizers(TextConfig(subword=BPEConfig(size=300)), text, text)
    stack = {"layers": 1, "heads": 2, "feedforward": 32}
    config = ModelConfig(preset=None, width=16, encoder=stack, decoder=stack)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = build_model(config, tokenizers.source.size, tokenizers.target.size)
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.4)  # far from uniform, so that sentences differ
    folder = tmp_path_factory.mktemp("model") / "tiny"
    settings = dump_yaml({"model": config.model_dump(mode="json")})
    write_model_folder(folder, model_parameters(model), settings, tokenizers, Meta(step=1))
    return folder
