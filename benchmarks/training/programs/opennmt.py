"""OpenNMT-py's own training program and batches, with the gate around its updates."""

from typing import Any

import yaml
from gate import Gate
from sizes import CLIP, DROPOUT, LEARNING_RATE, SMOOTHING, WARMUP
from worker import Task

NEVER = 10**9


def settings(task: Task) -> dict[str, Any]:
    """Return its configuration file. Sentences of similar length are grouped in buckets of 262,144, its default."""
    sizes = task.sizes
    vocabulary = task.own / "vocabulary.txt"
    vocabulary.write_text("".join(f"{word}\t1\n" for word in range(4, task.corpus["size"])))
    return {
        "save_data": str(task.own),
        "data": {
            "corpus": {
                "path_src": str(task.folder / "train.source"),
                "path_tgt": str(task.folder / "train.target"),
            }
        },
        "src_vocab": str(vocabulary),
        "tgt_vocab": str(vocabulary),
        "src_vocab_size": task.corpus["size"],
        "tgt_vocab_size": task.corpus["size"],
        "share_vocab": True,
        "share_embeddings": True,
        "share_decoder_embeddings": True,
        "save_model": str(task.own / "model"),
        "save_checkpoint_steps": NEVER,
        "train_steps": NEVER,
        "valid_steps": NEVER,
        "report_every": 100,
        "seed": task.seed,
        "encoder_type": "transformer",
        "decoder_type": "transformer",
        "position_encoding": True,
        "layers": sizes.layers,
        "hidden_size": sizes.width,
        "word_vec_size": sizes.width,
        "heads": sizes.heads,
        "transformer_ff": sizes.feedforward,
        "dropout": [DROPOUT],
        "attention_dropout": [0.0],
        "label_smoothing": SMOOTHING,
        "batch_type": "tokens",
        "batch_size": task.tokens,
        "normalization": "tokens",
        "accum_count": [1],
        "optim": "adam",
        "adam_beta2": 0.98,
        "learning_rate": LEARNING_RATE,
        "warmup_steps": WARMUP,
        "decay_method": "rsqrt",
        "max_grad_norm": CLIP,
        "param_init": 0,
        "param_init_glorot": True,
        "num_workers": 0,
        **({"world_size": 1, "gpu_ranks": [0]} if task.device != "cpu" else {}),
    }


def train(task: Task, gate: Gate) -> None:
    """Run `onmt_train -config …`."""
    from onmt.bin.train import _get_parser
    from onmt.bin.train import train as run
    from onmt.trainer import Trainer

    step_of_theirs = Trainer._gradient_accumulation

    def step(self: Any, batches: Any, normalization: Any, total: Any, report: Any) -> Any:
        gate.facts["parameters"] = sum(parameter.numel() for parameter in self.model.parameters())
        gate.next()
        before, words = report.loss, report.n_words
        result = step_of_theirs(self, batches, normalization, total, report)
        labels = [batch["tgt"][:, 1:, 0] for batch in batches]
        tokens = sum(int((each != self.train_loss.padding_idx).sum()) for each in labels)
        loss = (report.loss - before) / max(1, report.n_words - words)
        gate.count(tokens, max(each.numel() for each in labels), loss)
        return result

    Trainer._gradient_accumulation = step
    path = task.own / "opennmt.yaml"
    path.write_text(yaml.safe_dump(settings(task)))
    options, _ = _get_parser().parse_known_args(["-config", str(path)])
    run(options)
