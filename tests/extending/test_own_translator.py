"""A dictionary that translates word by word: a kind of model from outside the package, used by all commands."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from scripted_server import FREE, posted
from tiny_model import SOURCES, tiny_tokenizers
from torch import Tensor, nn

import dragoman
from dragoman.addons.serving.config import ServeConfig
from dragoman.addons.serving.models.served_models import Directions, ServedModel
from dragoman.addons.serving.service.control_defaults import ControlDefaults
from dragoman.addons.serving.service.service import Service
from dragoman.base.errors import ConfigError
from dragoman.base.settings.load import dump_settings
from dragoman.checkpoint.folder import load_model_folder, write_model_folder
from dragoman.checkpoint.meta import Meta
from dragoman.cli.main import main
from dragoman.decode.search import Hypothesis, SearchConfig
from dragoman.engines.engine import Pair, Row
from dragoman.inference.translation.request import Request
from dragoman.models.interface import LengthLimit, LengthLimits
from dragoman.models.kinds.registry import KINDS, ModelKind
from dragoman.models.settings import ModelSettings
from dragoman.text.tokenizers import Tokenizers, VocabularySizes

ENTRIES = {"a": "ein", "dog": "Hund", "runs": "rennt", "sleep": "schlafen", "two": "zwei", "dogs": "Hunde"}


class DictionaryConfig(ModelSettings):
    kind: Literal["dictionary"] = "dictionary"
    entries: dict[str, str]

    def build_for(self, sizes: VocabularySizes) -> "Dictionary":
        return Dictionary(self.entries)


class Dictionary(nn.Module):
    limits = LengthLimits(LengthLimit("source", None, ""), LengthLimit("target", None, ""))

    def __init__(self, entries: dict[str, str]) -> None:
        super().__init__()
        self.entries = entries
        self.size = nn.Parameter(torch.tensor(float(len(entries))), requires_grad=False)

    def translation(self, text: str) -> str:
        return " ".join(self.entries.get(word, word) for word in text.split())

    def forward(self, *arguments: Tensor) -> Tensor:
        raise NotImplementedError


class DictionaryEngine:
    """Looks words up; every text has one translation, of probability 1."""

    precision = "float32"

    def __init__(self, model: Dictionary, tokenizers: Tokenizers) -> None:
        self.limits, self._model, self._target = model.limits, model, tokenizers.target

    def refusal(self, row: Row) -> str | None:
        return None if isinstance(row.decoding, SearchConfig) and not row.constraints else "a dictionary only looks up"

    def hypotheses(self, rows: Sequence[Row], batch_size: int) -> Iterator[tuple[int, list[Hypothesis]]]:
        for index, row in enumerate(rows):
            ids = tuple(self._target.encode(self._model.translation(row.text)))
            yield index, [Hypothesis(ids, 0.0, 0.0, True)]

    def scores(self, pairs: Sequence[Pair], batch_size: int) -> list[float]:
        raise ConfigError("a dictionary does not score translations")


def load_dictionary(folder: Path, device: str | None = None) -> dragoman.Translator:
    loaded = load_model_folder(folder, torch.device("cpu"), "translate")
    found = dragoman.Translator(DictionaryEngine(loaded.model, loaded.tokenizers), loaded.tokenizers, loaded.meta)
    found.kind = KIND
    return found


class TextTranslator:
    """Has only what `SupportsTranslate` names."""

    def __init__(self, folder: Path) -> None:
        self.kind, self._model = KINDS["dictionary"], load_model_folder(folder, torch.device("cpu")).model

    def request(self, **settings: Any) -> Request:
        return Request(SearchConfig())

    def translate(self, texts: Sequence[str], *, batch_size: int = 64, beam: int | None = None) -> list[str]:
        return list(map(self._model.translation, texts))

    def translate_nbest(self, texts: Sequence[str], requests: Any = None, batch_size: int = 64) -> Any:
        return [[Hypothesis((), 0.0, 0.0, True)] for _ in texts]

    def target_language(self, tags: Sequence[str] = ()) -> str | None:
        return "de"


ABILITIES = frozenset({"translate", "teach"})
SIDES: Any = ("source", "target")
KIND = ModelKind("dictionary", DictionaryConfig, "dictionary", SIDES, "translates", ABILITIES, "it", load_dictionary)
PLAIN = ModelKind("dictionary", DictionaryConfig, "dictionary", SIDES, "translates", ABILITIES, "it", TextTranslator)
EXPECTED = [" ".join(ENTRIES.get(word, word) for word in text.split()) for text in SOURCES]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(KINDS, KIND.name, KIND)
    monkeypatch.chdir(tmp_path)
    config = DictionaryConfig(entries=ENTRIES)
    section = dump_settings(config).replace("\n", "\n  ").strip()
    meta = Meta(step=1, source_language="en", target_language="de")
    parameters = {name: each.data for name, each in config.build_for(tiny_tokenizers().sizes).named_parameters()}
    write_model_folder(Path("dictionary"), parameters, f"model:\n  {section}\n", tiny_tokenizers(), meta)
    Path("source").write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    Path("reference").write_text("\n".join(EXPECTED) + "\n", encoding="utf-8")
    return Path("dictionary")


def test_files_and_documents(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert dragoman.load(folder).translate(SOURCES) == EXPECTED
    command = ["translate", str(folder), "-i", "source", "-o", "output", "--quiet"]
    assert main(command) == 0
    assert Path("output").read_text(encoding="utf-8").splitlines() == EXPECTED
    assert main([*command[:4], "-o", "other", "--engine", "native"]) == 2
    assert "engine does not apply to dictionary, which is a dictionary" in capfd.readouterr().err
    assert main(["evaluate", str(folder), "--source", "source", "--reference", "reference", "--metric", "bleu"]) == 0
    assert "BLEU = 100.00" in capfd.readouterr().out
    assert main(["score", str(folder), "--source", "source", "--target", "reference"]) == 1
    assert "it cannot score texts" in capfd.readouterr().err
    page = dragoman.translate_document(folder, "# a dog runs\n\n- two dogs sleep\n", format="markdown")
    assert page.text == "# ein Hund rennt\n\n- zwei Hunde schlafen\n"


def test_synthetic_pairs(folder: Path) -> None:
    pairs = dragoman.backtranslate(folder, "source", "pairs.tsv", filters={"copied": None}, quiet=True)
    assert pairs.kept == len(SOURCES)
    assert Path("pairs.tsv").read_text(encoding="utf-8").splitlines() == [
        f"{translation}\t{text}" for translation, text in zip(EXPECTED, SOURCES, strict=True)
    ]


@pytest.mark.slow
def test_it_is_a_teacher(folder: Path) -> None:
    small = {
        "model.width": 8,
        "data.valid": {"source": "source", "target": "reference"},
        "text.subword.size": 280,
        "train.max_steps": 1,
        "train.device": "cpu",
    }
    dragoman.distill(folder, "tiny", "student", small, source=["source"], beam=1, quiet=True)
    (written,) = Path("distilled").glob("*.tsv*")
    assert EXPECTED[0] in written.read_text(encoding="utf-8")


def test_it_is_served(folder: Path) -> None:
    settings = {"models": [{"path": str(folder)}], "log": False, "access": FREE, "hosts": ["server"]}
    config = ServeConfig.model_validate(settings)
    model = ServedModel(config.models[0], config.engine, config.queue, lambda batch: None)
    service = Service(config.limits, ControlDefaults(config))
    service.config = config  # type: ignore[attr-defined]
    service.open(Directions([model], ()))
    try:
        found = posted(service, "/translate", q=SOURCES[0], source="en", target="de").json()
    finally:
        model.close()
    assert found["translatedText"] == EXPECTED[0]


def test_a_class_that_only_translates_texts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, KIND.name, PLAIN)
    assert dragoman.load(folder).translate(SOURCES) == EXPECTED
    needed = "TextTranslator translates texts, but this needs a translator with aligner_of, codec, .*translate_window"
    with pytest.raises(ConfigError, match=needed):
        dragoman.translate_file(folder, "source", "output")
    with pytest.raises(ConfigError, match=needed):
        dragoman.translate_document(folder, "a dog")
    config = ServeConfig.model_validate({"models": [{"path": str(folder)}]})
    with pytest.raises(ConfigError, match="this needs a translator with .*concurrent, continuous"):
        ServedModel(config.models[0], config.engine, config.queue, lambda batch: None)
