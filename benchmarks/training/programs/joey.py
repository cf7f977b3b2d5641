"""Joey NMT's own training program and batches, with the gate around its updates."""

from pathlib import Path
from typing import Any

import yaml
from gate import Gate
from sizes import CLIP, DROPOUT, LEARNING_RATE, SMOOTHING, WARMUP
from worker import Task

NEVER = 10**9


def settings(task: Task) -> dict[str, Any]:
    """Return its configuration file."""
    sizes = task.sizes
    vocabulary = task.own / "vocabulary.txt"
    words = ["<unk>", "<pad>", "<s>", "</s>", *map(str, range(4, task.corpus["size"]))]
    vocabulary.write_text("".join(word + "\n" for word in words))
    stack = {
        "type": "transformer",
        "num_layers": sizes.layers,
        "num_heads": sizes.heads,
        "embeddings": {"embedding_dim": sizes.width, "scale": True, "dropout": DROPOUT},
        "hidden_size": sizes.width,
        "ff_size": sizes.feedforward,
        "dropout": DROPOUT,
        "layer_norm": "post",
        "activation": "relu",
    }
    side = {
        "max_length": 1000,
        "lowercase": False,
        "level": "word",
        "voc_file": str(vocabulary),
        "tokenizer_cfg": {"pretokenizer": "none"},
    }
    symbols = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    numbers = {"unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3}
    return {
        "name": "benchmark",
        "joeynmt_version": "2.3.0",
        "model_dir": str(task.own / "model"),
        "use_cuda": task.device != "cpu",
        "fp16": False,
        "random_seed": task.seed,
        "data": {
            "train": str(task.folder / "train"),
            "dev": str(task.folder / "valid"),
            "dataset_type": "plain",
            "src": {"lang": "source", **side},
            "trg": {"lang": "target", **side},
            "special_symbols": {**symbols, **numbers},
        },
        "testing": {"beam_size": 1, "eval_metrics": ["bleu"], "batch_size": 64, "batch_type": "sentence"},
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate_warmup": WARMUP,
            "learning_rate": LEARNING_RATE,
            "learning_rate_min": 1e-9,
            "clip_grad_norm": CLIP,
            "loss": "crossentropy",
            "label_smoothing": SMOOTHING,
            "batch_size": task.tokens,
            "batch_type": "token",
            "batch_multiplier": 1,
            "early_stopping_metric": "loss",
            "epochs": NEVER,
            "updates": NEVER,
            "validation_freq": NEVER,
            "logging_freq": 100,
            "overwrite": True,
            "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": stack,
            "decoder": stack,
        },
    }


def train(task: Task, gate: Gate) -> None:
    """Run `python -m joeynmt train`."""
    from joeynmt.config import load_config
    from joeynmt.training import TrainManager
    from joeynmt.training import train as run

    step_of_theirs = TrainManager._train_step

    def step(self: Any, batch: Any) -> Any:
        gate.facts["parameters"] = sum(parameter.numel() for parameter in self.model.parameters())
        gate.next()
        result = step_of_theirs(self, batch)
        gate.count(batch.ntokens, batch.trg.numel(), result[0])
        return result

    TrainManager._train_step = step
    path = Path(task.own) / "joey.yaml"
    path.write_text(yaml.safe_dump(settings(task)))
    (task.own / "model").mkdir()
    run(rank=0, world_size=0, cfg=load_config(path), skip_test=True)
