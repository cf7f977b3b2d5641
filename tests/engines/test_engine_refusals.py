"""Engines that do not support a model name the setting, for every choice that the settings of a model offer."""

import re
from pathlib import Path

import pytest
import torch
from tiny_model import tiny_config, write_tiny_model
from torch import nn
from variant_settings import SIZE, Case, cases

from dragoman import Translator
from dragoman.base.errors import ConfigError
from dragoman.engines.cuda.engine import unsupported
from dragoman.engines.native.embeddings import UnsupportedModelError
from dragoman.engines.native.model import stacks
from dragoman.engines.native.packing import Packing
from dragoman.models.kinds.encoder_decoder import ModelConfig


def class_names() -> set[str]:
    """The names of all modules that are not ordinary words."""
    found, open_classes = set(), [nn.Module]
    while open_classes:
        each = open_classes.pop()
        found.add(each.__name__)
        open_classes += each.__subclasses__()
    return {name for name in found if name != name.title()} | {"Bucketed", "Relative", "Mixture", "Additive", "General"}


@pytest.mark.slow
def test_every_refusal_names_a_setting_and_no_class() -> None:
    refused: dict[Case, set[str]] = {}
    for case, settings in cases().items():
        torch.manual_seed(1)
        model = ModelConfig.model_validate(settings).build(SIZE, SIZE)
        try:
            Packing(*stacks(model))
        except UnsupportedModelError as error:
            refused.setdefault(case, set()).add(str(error))
        if (reason := unsupported(model)) is not None:
            refused.setdefault(case, set()).add(reason)
    names, messages = class_names(), {message for each in refused.values() for message in each}
    assert len(messages) > 15
    for message in messages:
        assert re.search(r"model\.[a-z_.]+", message), message
        assert not names & set(re.findall(r"[A-Za-z]+", message)), message


def test_the_advice_of_a_named_engine_is_another_engine(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_tiny_model(folder, config=tiny_config(positions={"kind": "bucketed"}))
    with pytest.raises(ConfigError, match=r"model\.positions\.kind.*: use --engine torch"):
        Translator.load(folder, "cpu", "native")
