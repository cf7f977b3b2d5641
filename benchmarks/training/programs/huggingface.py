"""Hugging Face: MarianMTModel with transformers' Seq2SeqTrainer and its batches, grouped by length."""

from typing import Any

import torch
from gate import Gate
from programs.plain import marian, stack
from sizes import CLIP, LEARNING_RATE, SMOOTHING, WARMUP
from worker import Task

NEVER = 10**6
IGNORED = -100


def train(task: Task, gate: Gate) -> None:
    """Run the trainer. Batches have a fixed number of sentences, which fill the budget at the mean target length."""
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    torch.manual_seed(task.seed)
    corpus = task.corpus
    pad, bos, eos = corpus["pad"], corpus["bos"], corpus["eos"]
    data = [
        {"input_ids": [*source, eos], "labels": [*target, eos], "length": len(target)}
        for source, target in zip(task.ids("source"), task.ids("target"), strict=True)
    ]
    sentences = max(1, round(task.tokens * len(data) / corpus["target_tokens"]))

    def collate(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        source, labels = (stack([row[side] for row in rows], pad) for side in ("input_ids", "labels"))
        inputs = torch.cat([torch.full((len(rows), 1), bos), labels[:, :-1]], 1)
        return {
            "input_ids": source,
            "attention_mask": (source != pad).long(),
            "decoder_input_ids": inputs,
            "labels": labels.masked_fill(labels == pad, IGNORED),
        }

    class Data(torch.utils.data.Dataset[dict[str, Any]]):
        def __len__(self) -> int:
            return len(data)

        def __getitem__(self, row: int) -> dict[str, Any]:
            return data[row]

    class Trainer(Seq2SeqTrainer):  # type: ignore[misc]
        def training_step(self, model: Any, inputs: dict[str, Any], *rest: Any, **more: Any) -> torch.Tensor:
            gate.next()
            labels = inputs["labels"]
            tokens, padded = (labels != IGNORED).sum(), labels.numel()
            loss = super().training_step(model, inputs, *rest, **more)
            gate.count(tokens, padded, loss.detach())
            return loss  # type: ignore[no-any-return]

    model = marian(task)
    gate.facts["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    arguments = Seq2SeqTrainingArguments(
        str(task.own / "model"), per_device_train_batch_size=sentences, max_steps=NEVER, learning_rate=LEARNING_RATE,
        warmup_steps=WARMUP, label_smoothing_factor=SMOOTHING, max_grad_norm=CLIP, adam_beta2=0.98, bf16=task.bf16,
        use_cpu=task.device == "cpu", report_to=[], save_strategy="no", logging_steps=100, seed=task.seed,
        dataloader_num_workers=0, remove_unused_columns=False, disable_tqdm=True,
        train_sampling_strategy="group_by_length",
    )  # fmt: skip
    Trainer(model=model, args=arguments, train_dataset=Data(), data_collator=collate).train()
