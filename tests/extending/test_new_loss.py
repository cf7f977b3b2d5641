"""A new loss takes one file and one line of the union: tested in a copy of the package, which trains with it.

Run as a program with the folder of a recipe, this file trains with the first dragoman on the path.
"""

import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve()
SOURCE = HERE.parents[2] / "src" / "dragoman"
FILE = '''"""Focal loss."""

from typing import Any, Literal

from pydantic import Field

from dragoman.training.objectives.objective import FIRST, Loss, LossContext, ObjectiveConfig, TrainingPoint


class FocalConfig(ObjectiveConfig):
    """−(1 − p)^γ · log p (Lin et al. 2017)."""

    kind: Literal["focal"] = "focal"
    gamma: float = Field(2.0, ge=0, description="γ, how much less well-predicted tokens count")

    def build(self, context: LossContext) -> "Focal":
        return Focal(self.gamma, context)


class Focal:
    divisible = True

    def __init__(self, gamma: float, context: LossContext) -> None:
        self.gamma, self.predict = gamma, context.predict

    def __call__(self, model: Any, batch: Any, point: TrainingPoint = FIRST) -> Loss:
        output = self.predict(model, batch, point)
        log_probabilities = output.logits().float().log_softmax(-1)
        of_labels = log_probabilities.gather(-1, batch.labels[..., None])[..., 0][batch.target_mask]
        total = -((1 - of_labels.exp()) ** self.gamma * of_labels).sum()
        return Loss(total, -float(of_labels.detach().sum()), batch.target_tokens)
'''
IMPORT = "from dragoman.training.objectives.focal import FocalConfig\n"
UNION = "    CrossEntropyConfig | RDropConfig | SequenceRewardConfig | GuidedAlignmentConfig,\n"
RECIPE = """\
data: {{train: {{source: a, target: b}}, valid: {{source: a, target: b}}}}
text: {{subword: {{size: 300}}}}
model: {{preset: null, width: 16, encoder: {{layers: 1, heads: 2}}, decoder: {{layers: 1, heads: 2}}}}
train:
  objective: {{kind: focal, gamma: {gamma}}}
  max_steps: 6
  validate_every: 6
  log_every: 1
  threads: 1
  device: cpu
  precision: float32
out: run
"""


@pytest.mark.slow
def test_a_new_loss_is_one_file_and_one_line(tmp_path: Path) -> None:
    package = tmp_path / "src" / "dragoman"
    # compiled modules are copied too, except those that another process is still writing
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("*.pyc.*"))
    (package / "training" / "objectives" / "focal.py").write_text(FILE, "utf-8")
    union = package / "tasks" / "translation" / "objectives" / "union.py"
    before = union.read_text("utf-8")
    after = before.replace("from dragoman.training", IMPORT + "from dragoman.training", 1)
    after = after.replace(UNION, UNION.replace(",", " | FocalConfig,"), 1)
    union.write_text(after, "utf-8")
    changed = [line for line in difflib.ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]
    assert changed == [
        "+ " + IMPORT.rstrip("\n"),
        "- " + UNION.rstrip("\n"),
        "+ " + UNION.rstrip(",\n") + " | FocalConfig,",
    ]
    (tmp_path / "recipe.yaml").write_text(RECIPE.format(gamma=0.5), "utf-8")
    for side, word in (("a", "and"), ("b", "und")):
        lines = [f"word{number % 7} {word} word{number % 11}" for number in range(60)]
        (tmp_path / side).write_text("\n".join(lines) + "\n", "utf-8")
    result = subprocess.run(
        [sys.executable, str(HERE)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.splitlines()[-1] == "all shown"


def show() -> None:
    """Run in a separate process, where dragoman is the copy."""
    import io
    import json
    from contextlib import redirect_stdout

    import yaml

    import dragoman
    from dragoman.base.errors import ConfigError
    from dragoman.cli.main import main

    assert Path(dragoman.__file__).is_relative_to(Path.cwd()), dragoman.__file__
    dragoman.train("recipe.yaml", quiet=True)
    lines = [json.loads(line) for line in Path("run/log.jsonl").read_text("utf-8").splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert len(losses) == 6
    assert losses[-1] < losses[0]
    stored = yaml.safe_load(Path("run/config.yaml").read_text("utf-8"))
    assert stored["train"]["objective"] == {"kind": "focal", "gamma": 0.5}
    dragoman.train("recipe.yaml", {"train.max_steps": 8}, resume=True, quiet=True)
    with pytest.raises(ConfigError, match=r"train\.objective\.gamma"):
        dragoman.train("recipe.yaml", {"train.objective.gamma": -1, "out": "other"}, quiet=True)
    page = io.StringIO()
    with redirect_stdout(page):
        assert main(["settings", "--markdown"]) == 0
    assert "how much less well-predicted tokens count" in page.getvalue()
    print("all shown")


if __name__ == "__main__":
    show()
