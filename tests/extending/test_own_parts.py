"""Modules that register own parts: how they are imported, what they may register, and what model folders record."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import torch
import yaml
from tiny_model import SOURCES, TARGETS
from torch import Tensor

import dragoman
from dragoman.base.errors import ConfigError, ModelError
from dragoman.base.imports import VARIABLE
from dragoman.base.settings.config import ADDED_MEMBERS, Config, union_members_by_field
from dragoman.base.settings.load import dump_settings, load_settings, parse_settings
from dragoman.base.settings.reference import sections
from dragoman.base.settings.variants import Variants
from dragoman.cli.main import main
from dragoman.engines.registry import ENGINES, EngineKind, register_engine
from dragoman.metrics.metric import Metric, Outputs
from dragoman.metrics.registry import METRICS
from dragoman.metrics.registry import register as register_metric
from dragoman.nn.attention.scorers import SCORERS, DotConfig, Scorer
from dragoman.nn.positions.union import POSITIONS
from dragoman.tasks.train import load_recipe

NEGATIVE = """
from typing import Literal
from dragoman.base.settings.config import Config
from dragoman.nn.attention.scorers import SCORERS, Scorer

class Negative(Scorer):
    def fold(self, queries):
        return -queries

@SCORERS.register
class NegativeConfig(Config):
    kind: Literal["negative"] = "negative"
    def build(self, heads, query_width, key_width):
        return Negative()
"""


class Disc(Config):
    kind: Literal["disc"] = "disc"
    radius: float = 1.0


class Square(Config):
    kind: Literal["square"] = "square"
    side: int = 1


class Star(Config):
    kind: Literal["star"] = "star"
    points: int = 5

    def build(self) -> None: ...


@pytest.fixture(autouse=True)
def restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget what a test registers and imports."""
    kept = {registry: dict(registry.classes) for registry in (SCORERS, POSITIONS)}
    monkeypatch.setenv(VARIABLE, "")  # so that the value which `--import` sets is removed
    unions = dict(ADDED_MEMBERS)
    yield
    ADDED_MEMBERS.clear()
    ADDED_MEMBERS.update(unions)
    for registry, classes in kept.items():
        registry.classes.clear()
        registry.classes.update(classes)
    union_members_by_field.cache_clear()
    for name in ("negative", "broken", "unfinished"):
        sys.modules.pop(name, None)


@pytest.fixture
def shapes() -> tuple[Variants, type[Config]]:
    """A union of shapes that accepts own shapes, and a group with settings of this type."""
    registry = Variants("shape")
    union = Annotated[Disc | Square, registry]
    registry.extend(union)

    class Drawing(Config):
        shape: union = Disc()  # type: ignore[valid-type]
        frame: union | None = None  # type: ignore[valid-type]
        more: tuple[union, ...] = ()  # type: ignore[valid-type]

    return registry, Drawing


def test_settings_accept_a_registered_class_wherever_its_union_is_a_type(shapes: tuple[Variants, Any]) -> None:
    registry, drawing = shapes
    with pytest.raises(ConfigError, match="shape.kind: unknown kind 'star'"):
        parse_settings({"shape": {"kind": "star"}}, drawing, "a test")
    assert registry.register(Star) is Star
    settings = {"shape": {"kind": "star"}, "frame": {"kind": "star", "points": 7}, "more": [{"kind": "square"}]}
    parsed = parse_settings(settings, drawing, "a test")
    assert parsed == drawing(shape=Star(), frame=Star(points=7), more=(Square(),))
    assert load_settings(yaml.safe_load(dump_settings(parsed)), [], drawing) == parsed
    assert "points: 7" in dump_settings(parsed)
    assert [section.kind for section in sections(drawing) if section.path == "frame"] == ["disc", "square", "star"]
    with pytest.raises(ConfigError, match=r"unknown setting frame.edges \(a test\): expected one of .*points"):
        parse_settings({"frame": {"kind": "star", "edges": 1}}, drawing, "a test")
    with pytest.raises(ConfigError, match="shape.points: Input should be|shape.points: should be a valid integer"):
        parse_settings({"shape": {"kind": "star", "points": "many"}}, drawing, "a test")
    assert parse_settings({"shape": {"radius": 2}}, drawing, "a test").shape == Disc(radius=2)


def test_a_kind_has_one_class_which_a_notebook_may_define_again(shapes: tuple[Variants, Any]) -> None:
    registry, _ = shapes
    registry.register(Star)
    again = type("Star", (Config,), {**vars(Star), "__qualname__": "Star"})
    assert registry.register(again) is again and registry.classes["star"] is again
    other = type("Other", (Star,), {})
    for taken in (other, type("Round", (Star,), {"__annotations__": {"kind": Literal["disc"]}, "kind": "disc"})):
        with pytest.raises(ValueError, match="another shape is registered as '(star|disc)': choose another kind"):
            registry.register(taken)
    with pytest.raises(TypeError, match="Square has to define build"):
        registry.register(Square)
    with pytest.raises(TypeError, match="Config has no kind"):
        registry.register(Config)
    with pytest.raises(TypeError, match="a shape is a subclass of Config"):
        registry.register(int)  # type: ignore[type-var]
    with pytest.raises(TypeError, match="a position scheme is a subclass of PositionScheme"):
        POSITIONS.register(Star)


def test_metrics_and_engines_have_one_name_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.engines.registry.ENGINES", engines := list(ENGINES))

    class Length(Metric):
        key, name, better, needs = "length", "length", "lower", frozenset({"references"})

        def value(self, outputs: Outputs) -> float:
            return 1.0

    monkeypatch.setitem(METRICS, "length", Length())
    assert register_metric(Length) is Length
    recipe = {"data": {"train": [], "valid": []}, "out": "x"}
    with pytest.raises(ConfigError, match="train.metric: should be 'bleu'"):
        load_recipe(recipe, {"train.metric": "width", "task.kind": "translation"})
    with pytest.raises(ConfigError) as refused:
        load_recipe(recipe, {"train.metric": "length"})
    assert "train.metric" not in str(refused.value)
    with pytest.raises(ValueError, match="there is already a metric called 'bleu'"):
        register_metric(type("Other", (Length,), {"key": "bleu"}))
    with pytest.raises(TypeError, match="a metric is a subclass of Metric"):
        register_metric(int)  # type: ignore[type-var]
    own = EngineKind("own", engines[-1].serves)
    assert register_engine(register_engine(own)) is own and [each.name for each in engines][-2:] == ["own", "torch"]
    with pytest.raises(ValueError, match="there is already an engine called 'native'"):
        register_engine(EngineKind("native", engines[-1].serves))


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the module `negative`, and a model that was trained with its scorer."""
    monkeypatch.chdir(tmp_path)
    Path("negative.py").write_text(NEGATIVE, encoding="utf-8")
    Path("source").write_text("\n".join(SOURCES * 4), encoding="utf-8")
    Path("target").write_text("\n".join(TARGETS * 4), encoding="utf-8")
    corpus = {"source": "source", "target": "target"}
    recipe = {
        "imports": ["negative.py"],
        "data": {"train": corpus, "valid": corpus},
        "text": {"subword": {"size": 270}},
        "model": {
            "preset": "tiny",
            "width": 16,
            "encoder": {"layers": 1, "feedforward": 16},
            "decoder": {"layers": 1, "feedforward": 16, "attention": {"scorer": {"kind": "negative"}}},
        },
        "train": {"max_steps": 2},
        "out": "run",
    }
    Path("recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    assert main(["train", "recipe.yaml", "--quiet"]) == 0
    return tmp_path / "run"


def forget() -> None:
    """Return to the state of a new process."""
    SCORERS.classes.clear()
    union_members_by_field.cache_clear()
    del sys.modules["negative"]


@pytest.mark.usefixtures("one_thread")
def test_a_model_with_an_own_scorer_needs_its_module_and_says_so(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    translator = dragoman.Translator.load(trained, "cpu")
    scorers = [module for module in translator.engine.model.modules() if isinstance(module, Scorer)]  # type: ignore[attr-defined]
    assert [type(scorer).__name__ for scorer in scorers] == ["ScaledDot", "Negative", "ScaledDot"]
    assert torch.equal(scorers[1].fold(torch.ones(1)), -torch.ones(1))
    outputs = translator.translate(SOURCES)
    forget()
    with pytest.raises(ModelError, match=r"run needs own code.*--import negative.py.*DRAGOMAN_IMPORT=negative.py"):
        dragoman.Translator.load(trained, "cpu")
    assert main(["describe", str(trained)]) != 0 and "needs own code" in capsys.readouterr().err
    assert main(["--import", "negative.py", "translate", str(trained), "-i", "source", "-o", "first"]) == 0
    assert Path("first").read_text("utf-8").splitlines()[: len(SOURCES)] == outputs
    forget()
    monkeypatch.setenv(VARIABLE, "negative.py")
    assert dragoman.Translator.load(trained, "cpu").translate(SOURCES) == outputs


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_a_run_records_the_modules_of_the_command_line(trained: Path) -> None:
    recipe = yaml.safe_load(Path("recipe.yaml").read_text("utf-8"))
    del recipe["imports"]
    Path("recipe.yaml").write_text(yaml.safe_dump(recipe), encoding="utf-8")
    forget()
    assert main(["train", "recipe.yaml", "out=second", "--quiet"]) == 2
    assert main(["--import", "negative.py", "train", "recipe.yaml", "out=second", "--quiet"]) == 0
    assert yaml.safe_load(Path("second/config.yaml").read_text("utf-8"))["imports"] == ["negative.py"]
    assert main(["train", "--resume", "--out", "second", "--quiet"]) == 0


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("absent.py", None, "the module absent.py does not exist (--import)"),
        ("absent.module", None, "there is no module absent.module (--import): install its package"),
        ("broken.py", "one = 1\none / 0\n", "broken.py cannot be imported (--import): ZeroDivisionError: division by"),
        ("unfinished.py", "def (\n", "unfinished.py cannot be imported (--import): invalid syntax at unfinished.py:1"),
        ("broken.py", "import absent\n", "broken.py cannot be imported (--import): ModuleNotFoundError: No module"),
        ("json.py", "one = 1\n", "json.py has the name of another module, "),
        (
            "broken.py",
            "from dragoman.nn.attention.scorers import SCORERS, DotConfig\nSCORERS.register(DotConfig)\n",
            "ValueError: another scorer is registered as 'dot': choose another kind at broken.py:2",
        ),
    ],
)
def test_messages_on_modules_that_cannot_be_imported(
    name: str,
    code: str | None,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if code is not None:
        Path(name).write_text(code, encoding="utf-8")
    assert main(["--import", name, "settings"]) == 2
    assert message in capsys.readouterr().err
    assert "broken" not in sys.modules and "unfinished" not in sys.modules


def test_imports_is_a_list(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="imports is a list of modules, as in imports="):
        load_recipe({"imports": "own.py", "out": str(tmp_path)}, [])
    assert DotConfig().build(1, 2, 2)(Tensor([[[[1, 2]]]]), Tensor([[[[3, 4]]]])).item() == 11
