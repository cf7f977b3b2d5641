"""Names of other toolkits lead to dragoman's settings, and the index reports the same errors as the config classes."""

import json
from pathlib import Path

import pytest
from repository import ROOT
from training_runs import process_environment

from dragoman.base.errors import ConfigError
from dragoman.base.settings.config import known_settings
from dragoman.base.settings.index import Index, build_index, check_settings
from dragoman.base.settings.synonyms import find_synonyms
from dragoman.cli.settings_index import check_with_index, store_index
from dragoman.tasks.kinds import TASKS, TRANSLATION
from dragoman.tasks.train import load_recipe

BASE = ["data={train: {tsv: a}, valid: {tsv: b}}", "out=run"]


@pytest.fixture(scope="module")
def index() -> Index:
    """The index, as it is stored."""
    return json.loads(json.dumps(build_index({kind: task.run for kind, task in TASKS.items()})))


def error_of(index: Index, *overrides: str) -> str:
    with pytest.raises(ConfigError) as error:
        check_settings(index, None, [*BASE, *overrides])
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
def test_a_name_of_another_toolkit_leads_to_the_setting(index: Index, name: str, setting: str) -> None:
    message = error_of(index, f"{name}=1")
    assert f"unknown setting {name} (from the command line); did you mean {setting}" in message
    with pytest.raises(ConfigError) as error:
        load_recipe(None, [*BASE, f"{name}=1"])
    assert message == str(error.value)


def test_every_synonym_leads_to_an_existing_setting() -> None:
    from dragoman.base.settings import synonyms

    known = set(known_settings(TRANSLATION.run))
    assert set(synonyms._NAMES) | set(synonyms._ALTERNATIVES.values()) <= known
    names = [name for names in synonyms._NAMES.values() for name in names.split()]
    assert len(names) == len(set(names))
    assert all(find_synonyms(name) for name in names)


def test_a_synonym_of_a_setting_in_the_same_group_is_preferred(index: Index) -> None:
    assert "did you mean data.valid.source?" in error_of(index, "data.valid.src=x")
    assert "did you mean model.decoder.layers?" in error_of(index, "model.decoder.num_layers=2")


@pytest.mark.parametrize(
    "overrides",
    [
        ["train.max_steps=abc"],
        ["train.max_steps=0"],
        ["train.max_step=3"],
        ["train.precision=fp16"],
        ["train.clip=[1]"],
        ["model.encoder.kind=rrn"],
        ["model.encoder.width=3"],
        ["text.subword.size=large"],
        ["data.train=[{tsv: a, wieght: 2}]"],
        ["search.beam=0", "train.seed=-1"],
        ["zzz=1"],
        ["task.kind=language_model", "train.lr=1"],
        ["train.schedule={kind: cosine, warm: 3}"],
        ["model.encoder={kind:recurrent}"],
    ],
)
def test_the_index_finds_the_errors_of_the_config_classes(index: Index, overrides: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        load_recipe(None, [*BASE, *overrides])
    expected = str(error.value)
    first = error_of(index, *overrides).splitlines()[-1].strip()
    assert first.partition(" (from")[0] in expected


RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_the_index_accepts_every_recipe(index: Index, recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_DATA", "/nowhere")
    check_settings(index, recipe, [])


def test_the_index_accepts_short_forms(index: Index) -> None:
    for override in (
        "search.length_penalty=0.6",
        "search.unknown=copy",
        "model.dropout=0.1",
        "train.schedule=null",
        "train.patience=null",
        "train.start=${HOME}/model",
    ):
        check_settings(index, None, [*BASE, override])


def test_a_mistake_is_found_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is written once and then read by a process that imports neither torch nor numpy."""
    import subprocess
    import sys

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    store_index()
    with pytest.raises(ConfigError, match=r"did you mean train\.schedule\.peak\?"):
        check_with_index(None, ["lr=3"])
    code = (
        "import sys; from dragoman.cli.main import main; code = main(['train', 'lr=3']); "
        "sys.exit(10 * code + ('torch' in sys.modules or 'numpy' in sys.modules))"
    )
    finished = subprocess.run([sys.executable, "-c", code], env=process_environment(), capture_output=True, text=True)
    assert (finished.returncode, finished.stdout) == (20, "")
    assert finished.stderr == "error: unknown setting lr (from the command line); did you mean train.schedule.peak?\n"
