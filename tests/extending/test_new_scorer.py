"""A new scorer takes one class and one line of the union: everything works with it in a copy of the package.

Run as a program with a folder, this file demonstrates it with the first dragoman on the path.
"""

import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from repository import FIXTURES, ROOT

HERE = Path(__file__).resolve()
SOURCE = HERE.parents[2] / "src" / "dragoman"
CLASSES = '''class NearnessConfig(Config):
    """−‖q − k‖²."""

    kind: Literal["nearness"] = "nearness"
    sharpness: float = Field(1.0, gt=0, description="what the distance is multiplied by")

    def build(self, heads: int, query_width: int, key_width: int) -> Scorer:
        """Widths are those of one head."""
        _require_equal_widths(self, query_width, key_width)
        return Nearness(self.sharpness)


class Nearness(Scorer):
    """−‖q − k‖²."""

    is_dot_product = False

    def __init__(self, sharpness: float) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def forward(self, queries: Tensor, prepared: Tensor) -> Tensor:
        """(B, h, …, T, d) and keys (B, h, …, S, d) → (B, h, …, T, S)."""
        return -self.sharpness * (queries.unsqueeze(-2) - prepared.unsqueeze(-3)).square().sum(-1)


'''
UNION = (
    "ScorerConfig = Annotated[DotConfig | ScaledDotConfig | GeneralConfig | AdditiveConfig | LeakyReLUConfig, SCORERS]"
)
LARGER = UNION.replace(", SCORERS", " | NearnessConfig, SCORERS")
RECIPE = """\
preset: null
width: 8
encoder: {layers: 1, heads: 2, feedforward: 8, attention: {scorer: {kind: nearness}}}
decoder:
  layers: 1
  heads: 2
  feedforward: 8
  attention: {scorer: {kind: nearness, sharpness: 0.5}}
  cross_attention: {scorer: {kind: nearness}}
"""
RECURRENT = """\
preset: null
width: 8
encoder: {kind: recurrent}
decoder: {kind: recurrent, attention: {scorer: {kind: nearness}}}
"""


@pytest.mark.slow
def test_a_new_scorer_is_one_class_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "src" / "dragoman"
    # compiled modules are copied too, except those that another process is still writing
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("*.pyc.*"))
    file = package / "nn" / "attention" / "scorers.py"
    before = file.read_text("utf-8")
    after = before.replace("ScorerConfig = Annotated[", CLASSES + "ScorerConfig = Annotated[", 1)
    after = after.replace(UNION, LARGER, 1)
    file.write_text(after, "utf-8")
    changed = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    assert [line for line in changed if line[2:] not in CLASSES.splitlines()] == [
        f"- {UNION}",
        f"+ {LARGER}",
    ]
    (tmp_path / "transformer.yaml").write_text(RECIPE, "utf-8")
    (tmp_path / "recurrent.yaml").write_text(RECURRENT, "utf-8")
    path = os.pathsep.join(map(str, (tmp_path / "src", FIXTURES, ROOT / "benchmarks/variants")))
    result = subprocess.run(
        [sys.executable, str(HERE), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "all shown"


def show(folder: Path) -> None:
    """Run in a separate process, where dragoman is the copy."""
    import io
    from contextlib import redirect_stdout

    import torch
    from tiny_model import write_tiny_model
    from variant_checks import check
    from variant_settings import holding, label, refusal, registry, singles

    import dragoman
    from dragoman.base.settings.load import load_settings
    from dragoman.checkpoint.folder import load_model_folder
    from dragoman.cli.main import main
    from dragoman.inference.translation.translator import Translator
    from dragoman.models.kinds.encoder_decoder import ModelConfig

    assert Path(dragoman.__file__).is_relative_to(folder), dragoman.__file__

    for recipe in (
        "transformer",
        "recurrent",
    ):  # it is read from YAML, works in both models and survives saving
        config = load_settings(folder / f"{recipe}.yaml", [], ModelConfig)
        check(config)
        written = write_tiny_model(folder / recipe, config=config).eval()
        loaded = load_model_folder(folder / recipe, torch.device("cpu")).model
        tokens, keep = torch.tensor([[5, 6, 7, 3]]), torch.ones(1, 4, dtype=torch.bool)
        assert torch.equal(loaded(tokens, keep, tokens).logits(), written(tokens, keep, tokens).logits())
        assert "kind: nearness" in (folder / recipe / "config.yaml").read_text("utf-8")
        assert len(Translator.load(folder / recipe, device="cpu").translate(["a dog runs ."])) == 1

    offered = [choice for choice in registry() if choice.path[-1] == "scorer"]  # the tests of every variant include it
    assert len(offered) >= 10
    assert all("nearness" in choice.levels for choice in offered)
    new = {label(single): single for single in singles() if single[1] == "nearness"}
    assert len(new) == len(offered)
    accepted = [next(each for each in holding(single) if refusal(each) is None) for single in new.values()]
    for settings in accepted[::5]:  # tests/models checks the scorers of the package in all places
        check(ModelConfig.model_validate(settings))

    page = io.StringIO()
    with redirect_stdout(page):
        assert main(["settings", "--markdown"]) == 0
    assert "nearness" in page.getvalue()
    assert "what the distance is multiplied by" in page.getvalue()
    print("all shown")


if __name__ == "__main__":
    show(Path(sys.argv[1]))
