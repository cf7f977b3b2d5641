"""dragoman: `dragoman train` itself, from two files or from a recipe, with the clock around its updates.

Its own validations and checkpoints, and the points of the curve, are outside that clock. Its own clock, which ends the
run at train.max_minutes, includes the first two, so its updates have less time than those of the others.
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from recorder import Recorder
from worker import Task

RECIPES = Path(__file__).resolve().parents[1] / "recipes"


def command(task: Task, out: Path) -> list[str]:
    """Return the settings, as a user would give them."""
    data = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
    limit = f"train.max_minutes={task.options['minutes']:g}"
    if recipe := task.options.get("recipe"):
        given = [str(RECIPES / recipe)]
    else:
        given = [
            "--source", str(data / "train.en.gz"), "--target", str(data / "train.de.gz"),
            "--valid-source", str(data / "val.en.gz"), "--valid-target", str(data / "val.de.gz"),
        ]  # fmt: skip
    seed = [f"train.seed={task.seed}"] if task.seed != 1 else []
    return ["train", *given, "--out", str(out), limit, *seed, *(["--resume"] if (out / "config.yaml").exists() else [])]


def train(task: Task, recorder: Recorder) -> dict[str, Any]:
    """Run `dragoman train`, from its newest snapshot if there is one. Returns facts for the results."""
    import yaml

    from dragoman import __version__
    from dragoman.cli.main import main

    out, facts = task.own / "run", {"dragoman": __version__}
    attach(recorder, lambda folder: translations(folder, task), facts)
    code = main(command(task, out))
    if code:
        raise SystemExit(code)
    recorder.finish(lambda: translations(out, task))
    chosen = yaml.safe_load((out / "config.yaml").read_text("utf-8"))["train"]
    return {**facts, "precision": chosen["precision"], "threads": chosen["threads"]}


def attach(recorder: Recorder, translate: Callable[[Path], list[str]], facts: dict[str, Any]) -> None:
    """Run the clock during the loop's updates only.

    translate: the validation set's translations by the model in a folder.
    """
    from dragoman.training.run import loop
    from dragoman.training.updates.engine import Engine

    its_loop = loop._Loop
    restore, updates, after_step = its_loop._restore, its_loop._updates, its_loop._after_step
    validate, checkpoint, save = its_loop._validate, its_loop._checkpoint, its_loop._save_training
    launch, choose_final = Engine.launch, loop.choose_final

    def translate_now(self: Any) -> list[str]:
        folder = self.session.out.parent / "point"
        self.session.write_model(folder, self._parameters(), self.progress.step, None)
        return translate(folder)

    def restore_and_begin(self: Any) -> None:
        restore(self)
        facts["parameters"] = sum(parameter.numel() for parameter in self.session.model.parameters())
        recorder.begin(self.progress.step, lambda: translate_now(self))

    def timed_updates(self: Any) -> Iterator[Any]:
        recorder.start()
        yield from updates(self)

    def counted_launch(self: Any, *arguments: Any) -> Any:
        launched = launch(self, *arguments)
        recorder.step(launched.target_tokens)
        return launched

    def after_step_and_point(self: Any, interruption: Any, number: int | None, report: Any) -> None:
        after_step(self, interruption, number, report)
        if recorder.due and self.progress.finished is None:
            began = time.monotonic()
            recorder.point(lambda: self._save_training(report), lambda: translate_now(self))
            self._started += time.monotonic() - began
            report.resume_clock()

    def own_validation(self: Any, interruption: Any, report: Any) -> None:
        with recorder.paused(own=True):
            validate(self, interruption, report)

    def own_checkpoint(self: Any, report: Any) -> None:
        with recorder.paused():
            checkpoint(self, report)

    def marked_save(self: Any, report: Any) -> None:
        with recorder.paused():
            recorder.mark()
            save(self, report)

    def stop_and_choose(*arguments: Any) -> Any:
        recorder.stop()
        return choose_final(*arguments)

    its_loop._restore, its_loop._updates = restore_and_begin, timed_updates  # type: ignore[method-assign]
    its_loop._after_step, its_loop._validate = after_step_and_point, own_validation  # type: ignore[method-assign]
    its_loop._checkpoint, its_loop._save_training = own_checkpoint, marked_save  # type: ignore[method-assign]
    Engine.launch, loop.choose_final = counted_launch, stop_and_choose  # type: ignore[method-assign]


def translations(folder: Path, task: Task) -> list[str]:
    """Return the translations of the validation set, in order, as in the program's own validation."""
    from dragoman.decode.search import SearchConfig
    from dragoman.inference.translation.translator import Request, Translator

    sources = (task.folder / "text" / "valid.source").read_text("utf-8").split("\n")[:-1]
    request = Request(SearchConfig(beam=1, length_factor=1.5, length_margin=10))
    return Translator.load(folder, device="cpu", engine="torch").translate(sources, requests=request)
