"""Names of other toolkits lead to dragoman's settings."""

import pytest

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import known_settings
from dragoman.base.settings.synonyms import find_synonyms
from dragoman.cli.setting_names import check_setting_names
from dragoman.tasks.registry import TRANSLATION
from dragoman.tasks.train import load_recipe

BASE = ["data={train: {pairs: a}, valid: {pairs: b}}", "out=run"]


def error_of(*overrides: str) -> str:
    with pytest.raises(ConfigError) as error:
        load_recipe(None, [*BASE, *overrides])
    return str(error.value)


# The names are those of the documentation of fairseq, OpenNMT-py, Marian, Sockeye, Joey NMT and Hugging Face.
@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("lr", "train.schedule.peak"),
        ("learning_rate", "train.schedule.peak"),
        ("optimizer.lr", "train.schedule.peak"),
        ("train.learn-rate", "train.schedule.peak"),
        ("warmup_updates", "train.schedule.warmup"),
        ("lr_scheduler_type", "train.schedule.kind"),
        ("epochs", "train.max_epochs"),
        ("num_train_epochs", "train.max_epochs"),
        ("after-epochs", "train.max_epochs"),
        ("train_steps", "train.max_steps"),
        ("max-update", "train.max_steps"),
        ("batch_size", "data.batch.sentences"),
        ("mini-batch", "data.batch.sentences"),
        ("dropout", "model.dropout"),
        ("encoder.dropout", "model.dropout"),
        ("hidden_size", "model.width"),
        ("d_model", "model.width"),
        ("transformer-model-size", "model.width"),
        ("num_layers", "model.encoder.layers"),
        ("enc-depth", "model.encoder.layers"),
        ("dec_layers", "model.decoder.layers"),
        ("nhead", "model.encoder.heads"),
        ("encoder_ffn_embed_dim", "model.encoder.feedforward"),
        ("beam_size", "search.beam"),
        ("num_beams", "search.beam"),
        ("lenpen", "search.length_penalty"),
        ("src", "data.train.source"),
        ("train_tgt", "data.train.target"),
        ("valid_src", "data.valid.source"),
        ("source_lang", "data.source_language"),
        ("save_steps", "train.checkpoint_every"),
        ("eval_steps", "train.validate_every"),
        ("logging_steps", "train.log_every"),
        ("early_stopping_patience", "train.patience"),
        ("seed", "train.seed"),
        ("fp16", "train.precision"),
        ("bf16", "train.precision"),
        ("gpus", "train.device"),
        ("gpu_ranks", "train.device"),
        ("gradient_accumulation_steps", "train.accumulate"),
        ("update-freq", "train.accumulate"),
        ("max_grad_norm", "train.clip"),
        ("adam_betas", "train.optimiser.beta1"),
        ("weight_decay", "train.optimiser.weight_decay"),
        ("label_smoothing", "train.objective.label_smoothing"),
        ("vocab_size", "text.subword.size"),
        ("joined_dictionary", "text.shared"),
        ("share_all_embeddings", "model.tie_embeddings"),
        ("output_dir", "out"),
        ("save-dir", "out"),
        ("finetune_from_model", "train.start"),
    ],
)
def test_a_name_of_another_toolkit_leads_to_the_setting(name: str, setting: str) -> None:
    message = error_of(f"{name}=1")
    assert f"unknown setting {name} (from the command line); did you mean {setting}" in message
    with pytest.raises(ConfigError) as error:
        check_setting_names(None, [*BASE, f"{name}=1"])
    assert message == str(error.value)


def test_every_synonym_leads_to_an_existing_setting() -> None:
    from dragoman.base.settings import synonyms

    known = set(known_settings(TRANSLATION.run))
    assert set(synonyms.NAMES) | set(synonyms._ALTERNATIVES.values()) <= known
    names = [name for names in synonyms.NAMES.values() for name in names.split()]
    assert len(names) == len(set(names))
    assert all(find_synonyms(name) for name in names)


def test_a_synonym_of_a_setting_in_the_same_group_is_preferred() -> None:
    assert "did you mean data.valid.source?" in error_of("data.valid.src=x")
    assert "did you mean model.decoder.layers?" in error_of("model.decoder.num_layers=2")
