"""fairseq's own training program and its recipe for IWSLT'14 (examples/translation/README.md, "IWSLT'14 German to
English (Transformer)"), with the clock around its updates. It translates with its own generator.
"""

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from recorder import Recorder
from worker import Task

RECIPE = [
    "--arch", "transformer_iwslt_de_en", "--share-decoder-input-output-embed",
    "--optimizer", "adam", "--adam-betas", "(0.9, 0.98)", "--clip-norm", "0.0",
    "--lr", "5e-4", "--lr-scheduler", "inverse_sqrt", "--warmup-updates", "4000",
    "--dropout", "0.3", "--weight-decay", "0.0001",
    "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", "--max-tokens", "4096",
]  # fmt: skip
"""Its exact command, without the options for BLEU of its own validations, which do not affect updates."""

GREEDY = Namespace(beam=1, max_len_a=1.5, max_len_b=10)
_SENTENCES = 64
"""Batch size of translation."""


def train(task: Task, recorder: Recorder) -> dict[str, Any]:
    """Run `fairseq-train`, from the checkpoint if there is one. Returns facts for the results."""
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints contain its settings as objects
    import fairseq
    from fairseq.trainer import Trainer
    from fairseq_cli import train as program

    step_of_theirs, epoch_of_theirs = Trainer.train_step, program.train
    facts: dict[str, Any] = {"fairseq": fairseq.__version__, "precision": "float32"}
    saved = task.own / "checkpoints" / "checkpoint_last.pt"

    def step(self: Any, samples: Any, raise_oom: bool = False) -> Any:
        told = step_of_theirs(self, samples, raise_oom)
        recorder.step(sum(int(sample["ntokens"]) for sample in samples))
        return told

    def epoch(cfg: Any, trainer: Any, its_task: Any, iterator: Any) -> Any:
        if not facts.get("parameters"):
            facts["parameters"] = sum(parameter.numel() for parameter in trainer.model.parameters())
            recorder.begin(trainer.get_num_updates(), lambda: translations(trainer, its_task))
            recorder.start()
        return epoch_of_theirs(cfg, trainer, its_task, iterator)

    def after_update(cfg: Any, trainer: Any, its_task: Any, iterator: Any, *rest: Any) -> tuple[list[None], bool]:
        if recorder.due:
            recorder.point(lambda: save(trainer, iterator, saved), lambda: translations(trainer, its_task))
        return [None], recorder.over

    Trainer.train_step, program.train, program.validate_and_save = step, epoch, after_update
    sys.argv = [
        "fairseq-train", binarise(task), *RECIPE, "--source-lang", "source", "--target-lang", "target",
        "--save-dir", str(saved.parent), "--disable-validation", "--seed", str(task.seed), "--num-workers", "0",
        "--log-format", "simple", "--log-interval", "100", "--cpu",
    ]  # fmt: skip
    program.cli_main()
    recorder.stop()
    return facts


def binarise(task: Task) -> str:
    """Run `fairseq-preprocess` with one dictionary per side, as in the recipe; returns the folder."""
    folder = task.own / "binary"
    if not (folder / "done").exists():
        from fairseq_cli import preprocess

        sys.argv = [
            "fairseq-preprocess", "--source-lang", "source", "--target-lang", "target", "--workers", "1",
            "--trainpref", str(task.folder / "train"), "--validpref", str(task.folder / "valid"),
            "--destdir", str(folder),
        ]  # fmt: skip
        preprocess.cli_main()
        (folder / "done").touch()
    return str(folder)


def save(trainer: Any, iterator: Any, path: Path) -> None:
    """Write its checkpoint atomically."""
    part = path.with_suffix(".part")
    trainer.consolidate_optimizer()
    trainer.save_checkpoint(str(part), {"train_iterator": iterator.state_dict(), "val_loss": None})
    os.replace(part, path)


def translations(trainer: Any, its_task: Any) -> list[str]:
    """Return the translations of the validation set, as lines of ids, in order."""
    model = trainer.get_model().eval()
    if "valid" not in its_task.datasets:
        its_task.load_dataset("valid")
    dataset = its_task.dataset("valid")
    generator = its_task.build_generator([model], GREEDY)
    found: dict[int, str] = {}
    batches = its_task.get_batch_iterator(dataset, max_sentences=_SENTENCES).next_epoch_itr(shuffle=False)
    for sample in batches:
        hypotheses = its_task.inference_step(generator, [model], sample)
        for row, best in zip(sample["id"].tolist(), hypotheses, strict=True):
            found[row] = its_task.target_dictionary.string(best[0]["tokens"])
    return [found[row] for row in range(len(dataset))]
