"""`BatchTranslator`: translates and scores batches, halving those that do not fit the memory."""

from collections.abc import Sequence
from functools import cached_property

import torch

from dragoman.base.errors import ResourceError
from dragoman.base.memory import available_memory, is_out_of_memory
from dragoman.data.batches.batch import collate, pad
from dragoman.decode.forced import CHUNK, force
from dragoman.decode.search import Hypothesis
from dragoman.models.build import Seq2Seq
from dragoman.models.footprint import SHORT_TRIAL, Footprint, evaluate, measure, refined
from dragoman.text.special import EOS
from dragoman.translation.method import Method, Row


class BatchTranslator:
    """vocabulary: entries of the target's."""

    def __init__(self, model: Seq2Seq, vocabulary: int, device: torch.device) -> None:
        self._model, self._vocabulary, self._device = model, vocabulary, device

    def hypotheses(self, rows: Sequence[Row], method: Method) -> list[list[Hypothesis]]:
        """What `method` finds for each row. Raises ResourceError for a row that alone does not fit the memory."""
        free, longest = self._free_bytes(), max(len(row.source) for row in rows) + 1
        self._footprint = refined(self._footprint, self._model, longest, training=False, free=free)
        needed = self._search_bytes(rows, method)
        if needed <= free:
            try:
                tokens, keep = (tensor.to(self._device) for tensor in pad([row.source for row in rows], after=(EOS,)))
                with torch.inference_mode():
                    memory = self._model.encode(tokens, keep)
                    return method.hypotheses(self._model.decoder, memory, rows)
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
        # outside of `except`, whose traceback would keep the failed attempt's tensors alive
        if len(rows) == 1:
            raise _too_big(rows[0].line, len(rows[0].source), needed, free)
        middle = len(rows) // 2
        return self.hypotheses(rows[:middle], method) + self.hypotheses(rows[middle:], method)

    def score(self, rows: Sequence[tuple[int, list[int], list[int]]]) -> list[float]:
        """log p of each (index, source ids, target ids)."""
        batch = collate(
            [source for _, source, _ in rows], [target for _, _, target in rows], [row for row, _, _ in rows]
        )
        # logits are made a few at a time
        needed, free = 12 * min(batch.labels.numel(), CHUNK) * self._vocabulary, self._free_bytes()
        if needed <= free:
            try:
                on_device = batch.to(self._device)
                with torch.inference_mode():
                    memory = self._model.encode(on_device.source, on_device.source_keep)
                    scores = force(
                        self._model.decoder, memory, on_device.inputs, on_device.labels, on_device.target_keep
                    )
                    return [float(score) for score in scores.double().sum(1)]
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
        if len(rows) == 1:
            raise _too_big(rows[0][0] + 1, len(rows[0][1]) + len(rows[0][2]), needed, free)
        middle = len(rows) // 2
        return self.score(rows[:middle]) + self.score(rows[middle:])

    def _search_bytes(self, rows: Sequence[Row], method: Method) -> int:
        """A rough count of the bytes that a search of `rows` holds at its longest, in float32."""
        sentences, length = len(rows), max(len(row.source) for row in rows) + 1
        # outputs are seldom longer; a batch that is after all is caught and split
        limit = max(length, *(len(row.prefix.ids) for row in rows)) + method.margin
        # a cache is held twice while it is reordered
        cache = 2 * method.width * evaluate(self._footprint.cache, limit)
        memory = evaluate(self._footprint.memory, length)
        vocabulary = method.copies * 4 * method.width * self._vocabulary
        return sentences * (max(evaluate(self._footprint.encoding, length), cache + vocabulary) + memory)

    @cached_property
    def _footprint(self) -> Footprint:
        return measure(self._model, SHORT_TRIAL, training=False)

    def _free_bytes(self) -> int:
        if self._device.type == "cuda":
            free, _ = torch.cuda.mem_get_info(self._device)
            return int(free + torch.cuda.memory_reserved(self._device) - torch.cuda.memory_allocated(self._device))
        return available_memory()


def _too_big(line: int, tokens: int, needed: int, free: int) -> ResourceError:
    return ResourceError(
        f"line {line} ({tokens} tokens) does not fit the memory: about {needed / 2**20:,.0f} MiB needed, "
        f"{free / 2**20:,.0f} MiB free. Split the line into sentences, use a smaller beam, or free memory"
    )
