"""Joey NMT's own training program and its recipe for IWSLT'14 (configs/iwslt14_deen_bpe.yaml of its version 2), with
the clock around its updates. It translates with its own `predict`.

Deviations: case is kept, and the vocabulary has the 10,000 joint SentencePiece units that fairseq uses too, because
32,000 were for a corpus six times as large.
"""

import os
from typing import Any

import yaml
from recorder import Recorder
from worker import Task


def settings(task: Task) -> dict[str, Any]:
    """Return its configuration file."""
    model = task.own / "model"
    side = {
        "max_length": 62,
        "lowercase": False,
        "normalize": False,
        "level": "bpe",
        "voc_min_freq": 1,
        "voc_file": str(task.own / "vocabulary.txt"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(task.folder / "pieces.model"), "pretokenizer": "none"},
    }
    stack = {
        "type": "transformer",
        "num_layers": 6,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 256, "scale": True, "dropout": 0.0},
        "hidden_size": 256,
        "ff_size": 1024,
        "dropout": 0.3,
        "layer_norm": "pre",
        "activation": "relu",
    }
    return {
        "name": "time_to_quality",
        "joeynmt_version": "2.3.0",
        "model_dir": str(model),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 41 + task.seed,  # the recipe has 42
        "data": {
            "train": str(task.folder / "text" / "train"),
            "dev": str(task.folder / "text" / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
        },
        "testing": {
            "n_best": 1,
            "beam_size": 5,  # for its tests; its validations are greedy
            "beam_alpha": 1.0,
            "batch_size": 1024,
            "batch_type": "token",
            "max_output_length": 100,
            "eval_metrics": ["bleu"],
            "sacrebleu_cfg": {"tokenize": "13a"},
        },
        "training": {
            **({"load_model": str(model / "latest.ckpt")} if (model / "latest.ckpt").exists() else {}),
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": [0.9, 0.999],
            "scheduling": "plateau",
            "patience": 5,
            "decrease_factor": 0.7,
            "loss": "crossentropy",
            "learning_rate": 0.0003,
            "learning_rate_min": 0.00000001,
            "weight_decay": 0.0,
            "label_smoothing": 0.1,
            "batch_size": 4096,
            "batch_type": "token",
            "early_stopping_metric": "bleu",
            "epochs": 100,
            "validation_freq": 1000,
            "logging_freq": 100,
            "shuffle": True,
            "print_valid_sents": [0, 1, 2, 3, 4],
            "keep_best_ckpts": 5,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "init_gain": 1.0,
            "embed_initializer": "xavier_uniform",
            "embed_init_gain": 1.0,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack,
            "decoder": stack,
        },
    }


def train(task: Task, recorder: Recorder) -> dict[str, Any]:
    """Run `python -m joeynmt train`, from its latest checkpoint if there is one. Returns facts for the results.

    It makes its own validations, which its plateau schedule needs, outside the clock.
    """
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"  # its checkpoints contain numpy scalars
    from joeynmt import builders
    from joeynmt.config import load_config
    from joeynmt.prediction import predict
    from joeynmt.training import TrainManager
    from joeynmt.training import train as run

    plateau = builders.ReduceLROnPlateau
    # an argument that torch has removed since Joey NMT 2.3
    builders.ReduceLROnPlateau = lambda *given, verbose=False, **more: plateau(*given, **more)
    facts: dict[str, Any] = {"joeynmt": "2.3.0", "precision": "float32"}
    whole_of_theirs, step_of_theirs = TrainManager.train_and_validate, TrainManager._train_step
    validate_of_theirs, save_of_theirs = TrainManager._validate, TrainManager._save_checkpoint

    def whole(self: Any, train_data: Any, valid_data: Any) -> None:
        def translate() -> list[str]:
            arguments = {"device": self.device, "n_gpu": self.n_gpu, "args": self.dev_cfg, "autocast": self.autocast}
            return list(predict(self.model, valid_data, **arguments)[2])

        facts["parameters"] = sum(parameter.numel() for parameter in self.model.parameters())
        self.translate_for_curve = translate
        recorder.begin(self.stats.steps, translate)
        whole_of_theirs(self, train_data, valid_data)

    def step(self: Any, batch: Any) -> Any:
        if "begun" not in facts:
            facts["begun"] = True
            recorder.start()
        if recorder.due:
            recorder.point(lambda: replace_checkpoint(self), self.translate_for_curve)
        if recorder.over:
            self.stats.is_max_update = True  # so that it ends after this update, which is not part of the curve
            recorder.stop()
        result = step_of_theirs(self, batch)
        recorder.step(int(batch.ntokens))
        return result

    def replace_checkpoint(self: Any) -> None:
        """Remove checkpoints without a score, which it would keep forever."""
        latest, best = (task.own / "model" / f"{name}.ckpt" for name in ("latest", "best"))
        before = latest.resolve()
        self._save_checkpoint(False, float("nan"))
        kept = {latest.resolve(), best.resolve(), *(path.resolve() for _, path in self.ckpt_queue)}
        if before not in kept:
            before.unlink(missing_ok=True)

    def validate(self: Any, valid_data: Any) -> None:
        with recorder.paused(own=True):
            validate_of_theirs(self, valid_data)

    def save(self: Any, *arguments: Any) -> None:
        with recorder.paused():
            recorder.mark()
            save_of_theirs(self, *arguments)

    TrainManager.train_and_validate, TrainManager._train_step = whole, step
    TrainManager._validate, TrainManager._save_checkpoint = validate, save
    pieces = [line.split("\t")[0] for line in (task.folder / "pieces.vocab").open(encoding="utf-8")]
    (task.own / "vocabulary.txt").write_text("".join(piece + "\n" for piece in pieces), "utf-8")
    (task.own / "model").mkdir(exist_ok=True)
    (task.own / "joey.yaml").write_text(yaml.safe_dump(settings(task)), "utf-8")
    run(rank=0, world_size=0, cfg=load_config(task.own / "joey.yaml"), skip_test=True)
    facts.pop("begun", None)
    return facts
