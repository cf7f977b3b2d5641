"""The fp32 reference of a loss curve: torch's layers and loss, with dragoman's initial parameters."""

from collections.abc import Sequence
from typing import Any

import torch
from programs.plain import PlainTransformer
from sizes import CLIP, SMOOTHING
from torch import Tensor, nn
from torch.nn import functional
from worker import Task

from dragoman.data.batches.batch import Batch
from dragoman.models.kinds.encoder_decoder import Seq2Seq
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.updates.update import StepResult, Update


class Reference:
    """Updates of torch.nn.Transformer's layers in float32 on the batches of dragoman's run, with its learning rates.

    Dropout is applied as by default in dragoman, to embeddings and to the output of each sublayer, at the rate to which
    dragoman rounds it on a CPU.
    """

    def __init__(self, ours: Seq2Seq, task: Task) -> None:
        self.seed = int(task.options["draws"])
        self.model = PlainTransformer(task.sizes, task.corpus["size"], task.corpus["pad"]).to(task.device)
        copy_parameters(ours, self.model)
        for layer in (*self.model.encoder.layers, *self.model.decoder.layers):
            layer.dropout.p = layer.self_attn.dropout = 0.0
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = 0.0
        for module in self.model.modules():
            if isinstance(module, nn.Dropout) and task.device == "cpu":
                module.p = round(256 * module.p) / 256
        self.model.train()
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)

    def step(self, update: Update, point: TrainingPoint, rate: float) -> StepResult:
        """Like `Engine.step`."""
        torch.manual_seed(self.seed * 1_000_003 + point.step)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.zero_grad()
        batches: Sequence[Batch] = update.batches
        tokens = sum(batch.target_tokens for batch in batches)
        total = 0.0
        for batch in batches:
            batch = batch.to(torch.device(next(self.model.parameters()).device))
            logits = self.model(batch.source, batch.inputs)[batch.target_mask]
            labels = batch.labels[batch.target_mask]
            loss = functional.cross_entropy(logits, labels, label_smoothing=SMOOTHING, reduction="sum") / tokens
            loss.backward()
            total += float(loss.detach())
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimiser.step()
        return StepResult(total, total, float(norm), tokens)


@torch.no_grad()
def copy_parameters(ours: Seq2Seq, theirs: PlainTransformer) -> None:
    """Copy parameters from dragoman's names to torch's."""
    theirs.table.weight.copy_(ours.encoder.embedding.tokens.weight)
    for ours_layer, layer in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
        attention(ours_layer.self_attention, layer.self_attn)
        norms = (ours_layer.around_attention, layer.norm1), (ours_layer.around_feedforward, layer.norm2)
        rest(ours_layer, layer, norms)
    for ours_layer, layer in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
        attention(ours_layer.self_attention, layer.self_attn)
        attention(ours_layer.cross_attention, layer.multihead_attn)
        norms = (
            (ours_layer.around_self_attention, layer.norm1),
            (ours_layer.around_cross_attention, layer.norm2),
            (ours_layer.around_feedforward, layer.norm3),
        )
        rest(ours_layer, layer, norms)
    copied = sum(parameter.numel() for parameter in theirs.parameters())
    assert copied == sum(parameter.numel() for parameter in ours.parameters()), "models of different sizes"


def attention(ours: Any, theirs: nn.MultiheadAttention) -> None:
    """Copy attention, whose query, key and value projections are one matrix in torch."""
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def rest(ours: Any, theirs: Any, norms: tuple[tuple[Any, nn.LayerNorm], ...]) -> None:
    """Copy norms and the feed-forward network."""
    for residual, norm in norms:
        norm.load_state_dict(residual.norm.state_dict())
    pairs: list[tuple[nn.Parameter, Tensor]] = list(
        zip([*theirs.linear1.parameters(), *theirs.linear2.parameters()], ours.feedforward.parameters(), strict=True)
    )
    for parameter, value in pairs:
        parameter.copy_(value)
