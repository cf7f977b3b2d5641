"""A plain loop around torch.nn.Transformer's layers, or around Hugging Face's Marian model."""

import random
from collections.abc import Callable, Iterator

import torch
from gate import Gate
from sizes import CLIP, DROPOUT, SMOOTHING, Sizes, rate
from torch import Tensor, nn
from torch.nn import functional
from worker import Task

_POSITIONS = 512


class PlainTransformer(nn.Module):
    """A translator from torch's own layers, which also apply dropout to attention weights and inner units."""

    def __init__(self, sizes: Sizes, vocabulary: int, pad: int, dropout: float = DROPOUT) -> None:
        super().__init__()
        self.pad, self.width = pad, sizes.width
        self.table = nn.Embedding(vocabulary, sizes.width, padding_idx=pad)
        nn.init.normal_(self.table.weight, 0, sizes.width**-0.5)
        angles = torch.arange(_POSITIONS)[:, None] / 10000 ** (torch.arange(0, sizes.width, 2) / sizes.width)
        positions = torch.stack((angles.sin(), angles.cos()), -1).flatten(1)
        self.register_buffer("positions", positions, persistent=False)
        self.dropout = nn.Dropout(dropout)
        layer = (sizes.width, sizes.heads, sizes.feedforward, dropout)
        encoder_layer = nn.TransformerEncoderLayer(*layer, batch_first=True)
        self.encoder = nn.TransformerEncoder(encoder_layer, sizes.layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*layer, batch_first=True), sizes.layers)
        for module in (self.encoder, self.decoder):
            for parameter in module.parameters():
                if parameter.dim() > 1:
                    nn.init.xavier_uniform_(parameter)

    def embed(self, tokens: Tensor) -> Tensor:
        """(B, L) → (B, L, d)."""
        return self.dropout(self.table(tokens) * self.width**0.5 + self.positions[: tokens.size(1)])  # type: ignore[no-any-return]

    def encode(self, source: Tensor) -> Tensor:
        """source (B, S) → memory (B, S, d)."""
        return self.encoder(self.embed(source), src_key_padding_mask=source == self.pad)  # type: ignore[no-any-return]

    def decode(self, inputs: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        """inputs (B, T), memory (B, S, d), padding (B, S) of the source → states (B, T, d)."""
        length = inputs.size(1)
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool, device=inputs.device), 1)
        return self.decoder(  # type: ignore[no-any-return]
            self.embed(inputs), memory, tgt_mask=causal, memory_key_padding_mask=padding, tgt_is_causal=True
        )

    def project(self, states: Tensor) -> Tensor:
        """(…, d) → logits (…, V)."""
        return functional.linear(states, self.table.weight)

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """source (B, S), inputs (B, T) → logits (B, T, V)."""
        return self.project(self.decode(inputs, self.encode(source), source == self.pad))


def marian(task: Task) -> nn.Module:
    """transformers' MarianMTModel of the same sizes; dropout on embeddings and sublayers."""
    from transformers import MarianConfig, MarianMTModel

    sizes, corpus = task.sizes, task.corpus
    config = MarianConfig(
        vocab_size=corpus["size"], decoder_vocab_size=corpus["size"], d_model=sizes.width,
        encoder_layers=sizes.layers, decoder_layers=sizes.layers,
        encoder_attention_heads=sizes.heads, decoder_attention_heads=sizes.heads,
        encoder_ffn_dim=sizes.feedforward, decoder_ffn_dim=sizes.feedforward,
        dropout=DROPOUT, activation_function="relu", scale_embedding=True,
        pad_token_id=corpus["pad"], eos_token_id=corpus["eos"], bos_token_id=corpus["bos"],
        decoder_start_token_id=corpus["bos"], forced_eos_token_id=None, max_position_embeddings=_POSITIONS,
    )  # fmt: skip
    return MarianMTModel(config)  # type: ignore[no-any-return]


class MarianLogits(nn.Module):
    """Marian with the interface of `PlainTransformer`."""

    def __init__(self, model: nn.Module, pad: int) -> None:
        super().__init__()
        self.model, self.pad = model, pad

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        """source (B, S), inputs (B, T) → logits (B, T, V)."""
        keep = (source != self.pad).long()
        return self.model(input_ids=source, attention_mask=keep, decoder_input_ids=inputs, use_cache=False).logits  # type: ignore[no-any-return]


def batches(task: Task) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield source, target inputs and labels, epoch after epoch: sorted by length, batched by the longer side."""
    corpus = task.corpus
    pad, bos, eos = corpus["pad"], corpus["bos"], corpus["eos"]
    sources, targets = task.ids("source"), task.ids("target")
    draw = random.Random(task.seed)
    while True:
        order = list(range(len(sources)))
        draw.shuffle(order)
        order.sort(key=lambda row: (len(targets[row]), len(sources[row])))
        cut: list[list[int]] = [[]]
        longest = 0
        for row in order:
            longest = max(longest, len(sources[row]) + 1, len(targets[row]) + 1)
            if cut[-1] and longest * (len(cut[-1]) + 1) > task.tokens:
                cut.append([])
                longest = max(len(sources[row]), len(targets[row])) + 1
            cut[-1].append(row)
        draw.shuffle(cut)
        for rows in cut:
            yield (
                stack([[*sources[row], eos] for row in rows], pad),
                stack([[bos, *targets[row]] for row in rows], pad),
                stack([[*targets[row], eos] for row in rows], pad),
            )


def stack(rows: list[list[int]], pad: int) -> Tensor:
    """Return a padded tensor (B, L) int64, padded on the right."""
    width = max(map(len, rows))
    return torch.tensor([row + [pad] * (width - len(row)) for row in rows])


def train(task: Task, gate: Gate) -> None:
    """The training loop: autocast, fused Adam, clipping, label-smoothed cross-entropy over all positions."""
    torch.manual_seed(task.seed)
    corpus, device = task.corpus, torch.device(task.device)
    build: Callable[[], nn.Module] = lambda: PlainTransformer(task.sizes, corpus["size"], corpus["pad"])  # noqa: E731
    model = MarianLogits(marian(task), corpus["pad"]) if task.options.get("marian") else build()
    model = model.to(device).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    gate.facts["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    for step, read in enumerate(batches(task), 1):
        gate.next()
        tokens = int((read[2] != corpus["pad"]).sum())
        if device.type == "cuda":
            read = tuple(each.pin_memory().to(device, non_blocking=True) for each in read)  # type: ignore[assignment]
        source, inputs, labels = read
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        with torch.autocast(device.type, torch.bfloat16, enabled=task.bf16):
            logits = model(source, inputs)
            loss = functional.cross_entropy(
                logits.flatten(0, 1), labels.flatten(), ignore_index=corpus["pad"], label_smoothing=SMOOTHING
            )
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        gate.count(tokens, labels.numel(), loss.detach())
