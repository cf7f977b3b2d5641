"""`CudaSession`: continuous batching on a GPU. New sentences take over the slots of completed ones."""

import time
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple, Self

import torch
from torch.nn import functional

from dragoman.base.errors import ResourceError
from dragoman.base.machine.cuda_graphs import GraphRecorder
from dragoman.base.machine.memory import is_out_of_memory
from dragoman.data.batches.batch import pad
from dragoman.decode.search import Hypothesis
from dragoman.engines.cuda.captured import CapturedSlots
from dragoman.engines.cuda.slots import Slots, SlotSizes, attentions
from dragoman.engines.engine import Row
from dragoman.engines.native.request import NativeRequest
from dragoman.models.families.transformer import TransformerDecoder
from dragoman.models.interface import Memory
from dragoman.models.kinds.encoder_decoder import Seq2Seq

STEPS = 4
"""Number of tokens decoded between two checks for completed sentences; each check waits for the device."""

SLOTS = (1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096)
"""Allowed numbers of slots. The list is short because each combination of sizes needs a separate graph."""

_SOURCES = (16, 32, 64, 128, 256, 512, 1024)
_TARGETS = (32, 64, 96, 128, 192, 256, 384, 512, 768, 1024)

_MAX_UNUSED = 8
"""Maximum number of unused sets of slots that are kept for later sentences of the same sizes."""

_MEMORY_SHARE = 0.5
"""Maximum fraction of the free memory that one set of slots may occupy."""


class CudaRequest(NamedTuple):
    """A row and its resolved search settings."""

    row: Row
    search: NativeRequest


class Model:
    """A model whose decoder runs in slots. Sessions in several threads may share one model.

    Unused sets of slots are kept because capturing a step takes as long as translating several sentences.
    """

    def __init__(self, model: Seq2Seq, vocabulary: int) -> None:
        """model: a model on its device, with the dtype of the computation. vocabulary: the target vocabulary size."""
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.model, self.decoder, self.vocabulary = model.eval(), decoder, vocabulary
        self.device = decoder.projection.weight.device
        self._recorder = GraphRecorder(self.device) if self.device.type == "cuda" else None
        self._unused: OrderedDict[SlotSizes, CapturedSlots] = OrderedDict()
        self._lock = Lock()

    @torch.inference_mode()
    def encode(self, sources: Sequence[Sequence[int]], length: int) -> Memory:
        """Encode sources, which end with EOS; states and mask are padded to `length` tokens."""
        tokens, mask = pad(sources)
        memory: Memory = self.model.encode(tokens.to(self.device), mask.to(self.device))
        padding = length - tokens.size(1)
        return Memory(functional.pad(memory.states, (0, 0, 0, padding)), functional.pad(memory.mask, (0, padding)))

    @torch.inference_mode()
    def acquire(self, sizes: SlotSizes) -> CapturedSlots:
        """Return empty slots of the given sizes, or fewer slots if that many do not fit into memory.

        Raises ResourceError if not even a single slot fits.
        """
        with self._lock:
            return self._acquire(sizes)

    def _acquire(self, sizes: SlotSizes) -> CapturedSlots:
        slots = sizes.slots
        while True:
            sizes = sizes._replace(slots=slots)
            if sizes in self._unused:
                return self._unused.pop(sizes)
            try:
                if self._bytes(sizes) <= _MEMORY_SHARE * self._free_bytes():
                    return CapturedSlots(Slots(self.decoder, self.vocabulary, sizes), self._recorder)
            except RuntimeError as error:
                if not is_out_of_memory(error):
                    raise
            if self._unused:
                self._unused.clear()
                if self.device.type == "cuda":
                    torch.cuda.empty_cache()
            elif slots == 1:
                raise ResourceError(
                    f"a sentence of {sizes.source} tokens with a beam of {sizes.beam} does not fit into the GPU's "
                    "memory: use a smaller beam, or free memory"
                )
            else:
                slots = max(each for each in SLOTS if each < slots)

    @torch.inference_mode()
    def release(self, captured: CapturedSlots) -> None:
        """Keep slots for later use, and drop their sentences."""
        captured.slots.clear()
        with self._lock:
            self._unused[captured.slots.sizes] = captured
            while len(self._unused) > _MAX_UNUSED:
                self._unused.popitem(last=False)

    def _bytes(self, sizes: SlotSizes) -> int:
        """Estimate the bytes of caches, encoder memories, sequences and logits."""
        slots, beam, source, target = sizes
        width = sum(
            2 * self_attention.key.out_features * beam * target + 2 * cross_attention.key.out_features * source
            for self_attention, cross_attention in attentions(self.decoder)
        )
        cache_bytes = width * self.decoder.projection.weight.element_size()
        return slots * (cache_bytes + beam * (4 * 4 * self.vocabulary + 8 * 6 * target))

    def _free_bytes(self) -> int:
        if self.device.type != "cuda":
            return 1 << 62
        free, _ = torch.cuda.mem_get_info(self.device)
        return int(free + torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device))


@dataclass
class _Lane:
    """Requests of one beam size and similar lengths, and the slots that they share.

    numbers: the request number of each occupied slot. max_slots: the number of slots that fit into memory.
    """

    sizes: SlotSizes
    queue: deque[tuple[int, CudaRequest]] = field(default_factory=deque)
    numbers: dict[int, int] = field(default_factory=dict)
    captured: CapturedSlots | None = None
    max_slots: int = SLOTS[-1]


class CudaSession:
    """Decodes submitted requests, one per slot at a time. Must be closed.

    Continuous batching: Yu et al. 2022, "Orca: A Distributed Serving System for Transformer-Based Generative Models".
    """

    def __init__(
        self,
        model: Model,
        requests: Sequence[CudaRequest],
        batch_size: int,
        fallback: Callable[[CudaRequest], list[Hypothesis]],
    ) -> None:
        """batch_size: the maximum number of requests of the same beam size that are decoded together.

        fallback: a function that searches requests whose scores exceed the range of half precision.
        """
        self._model, self._batch_size, self._fallback = model, batch_size, fallback
        self._lanes: dict[tuple[int, int], _Lane] = {}
        self._requests: dict[int, CudaRequest] = {}
        self._cancelled: list[int] = []
        self._count = 0
        self.submit(requests)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def queued(self) -> int:
        """Number of requests that wait for a slot."""
        return sum(len(lane.queue) for lane in self._lanes.values())

    @property
    def in_progress(self) -> int:
        """Number of requests that were submitted and not yet returned by `completed`."""
        return len(self._requests) + len(self._cancelled)

    def accepts(self, request: CudaRequest) -> bool:
        """Return True: the session accepts every request that the engine supports."""
        return True

    def submit(self, requests: Sequence[CudaRequest]) -> None:
        """Queue requests in order. Numbering starts at 0 and continues across calls."""
        for request in requests:
            search, number = request.search, self._count
            source = _rounded(len(search.source), _SOURCES)
            lane = self._lanes.get((search.beam, source))
            if lane is None:
                lane = self._lanes[search.beam, source] = _Lane(SlotSizes(0, search.beam, source, 0))
            if search.limit > lane.sizes.target:
                lane.sizes = lane.sizes._replace(target=_rounded(search.limit, _TARGETS))
            lane.queue.append((number, request))
            self._requests[number] = request
            self._count += 1

    @torch.inference_mode()
    def cancel(self, number: int) -> None:
        """Complete a request without hypotheses, and free its slot."""
        if number not in self._requests:
            return
        for lane in self._lanes.values():
            lane.queue = deque(queued for queued in lane.queue if queued[0] != number)
            for slot in [slot for slot, other in lane.numbers.items() if other == number]:
                assert lane.captured is not None
                lane.captured.slots.drop(slot)
                del lane.numbers[slot]
        del self._requests[number]
        self._cancelled.append(number)

    def completed(self, timeout: float) -> list[tuple[int, list[Hypothesis]]]:
        """Decode until a request is completed; returns the number and the hypotheses of each completed request.

        timeout: seconds after which an empty list is returned, so that further requests can be submitted. Raises
        ResourceError for a request that does not fit into memory even by itself.
        """
        done: list[tuple[int, list[Hypothesis]]] = [(number, []) for number in self._cancelled]
        self._cancelled.clear()
        until = time.monotonic() + timeout
        while self._requests and not done:
            done = [each for lane in self._lanes.values() for each in self._advance(lane)]
            if time.monotonic() > until:
                break
        return done

    def close(self) -> None:
        """Drop all requests that are not completed."""
        for lane in self._lanes.values():
            if lane.captured is not None:
                self._model.release(lane.captured)
        self._lanes.clear()
        self._requests.clear()

    @torch.inference_mode()
    def _advance(self, lane: _Lane) -> list[tuple[int, list[Hypothesis]]]:
        """Fill free slots of a lane, decode a few tokens, and return the completed requests."""
        if not (lane.queue or lane.numbers):
            if lane.captured is not None:  # its last sentences were cancelled
                self._model.release(lane.captured)
                lane.captured = None
            return []
        try:
            self._admit(lane)
            assert lane.captured is not None
            lane.captured.run(min(STEPS, lane.captured.slots.remaining))
            collected = lane.captured.slots.collect()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            self._restart(lane)
            return []
        done = []
        for slot, hypotheses in collected.items():
            number = lane.numbers.pop(slot)
            request = self._requests.pop(number)
            done.append((number, hypotheses or self._fallback(request)))
        self._shrink(lane)
        return done

    def _admit(self, lane: _Lane) -> None:
        """Put queued requests into free slots, after moving to more or longer slots if necessary."""
        needed = min(self._batch_size, lane.max_slots, len(lane.queue) + len(lane.numbers))
        sizes = lane.sizes._replace(slots=_rounded(needed, SLOTS))
        if lane.captured is None:
            self._move(lane, sizes)
        elif lane.queue:
            current_sizes = lane.captured.slots.sizes
            if sizes.slots > current_sizes.slots or sizes.target > current_sizes.target:
                self._move(lane, sizes._replace(slots=max(sizes.slots, current_sizes.slots)))
        assert lane.captured is not None
        slots = lane.captured.slots
        count = min(len(slots.free), min(self._batch_size, lane.max_slots) - len(lane.numbers), len(lane.queue))
        # encoding a few sentences takes as long as encoding many, so the lane waits until several can be admitted
        if count == 0 or (lane.numbers and count < min(len(lane.queue), slots.sizes.slots // 4)):
            return
        admitted = [lane.queue.popleft() for _ in range(count)]
        lane.numbers.update(zip(slots.free, (number for number, _ in admitted), strict=False))
        searches = [request.search for _, request in admitted]
        slots.admit(searches, self._model.encode([search.source for search in searches], slots.sizes.source))

    def _shrink(self, lane: _Lane) -> None:
        """Move the last sentences of a lane to fewer slots, and release the slots of an empty lane."""
        assert lane.captured is not None
        if lane.queue:
            return
        slots = lane.captured.slots.sizes.slots
        if not lane.numbers:
            self._model.release(lane.captured)
            lane.captured = None
        elif (fewer := _rounded(len(lane.numbers), SLOTS)) <= slots // 8:
            max_slots = lane.max_slots
            self._move(lane, lane.captured.slots.sizes._replace(slots=fewer))
            lane.max_slots = max_slots

    def _move(self, lane: _Lane, sizes: SlotSizes) -> None:
        """Acquire slots of the given sizes for a lane, and move its sentences to them."""
        old = lane.captured
        new = self._model.acquire(sizes)
        if new.slots.sizes.slots < sizes.slots:
            lane.max_slots = new.slots.sizes.slots
        lane.captured = new
        if old is not None:
            if len(lane.numbers) > new.slots.sizes.slots:
                self._requeue(lane)
            else:
                moved = new.slots.take_over(old.slots)
                lane.numbers = {moved[slot]: number for slot, number in lane.numbers.items()}
            self._model.release(old)

    def _requeue(self, lane: _Lane) -> None:
        """Put the sentences of a lane back into its queue, to be decoded from the start."""
        for number in sorted(lane.numbers.values(), reverse=True):
            lane.queue.appendleft((number, self._requests[number]))
        lane.numbers.clear()

    def _restart(self, lane: _Lane) -> None:
        """Restart the sentences of a lane after a failed allocation, with half as many slots."""
        decoded = len(lane.numbers)
        lane.captured = None
        self._requeue(lane)
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
        if decoded <= 1:
            raise ResourceError("a sentence does not fit into the GPU's memory: use a smaller beam, or free memory")
        lane.max_slots = decoded // 2


def _rounded(count: int, sizes: Sequence[int]) -> int:
    """Round up to the next element of `sizes`, or to a multiple of the last element if `count` exceeds it."""
    index = bisect_left(sizes, count)
    return sizes[index] if index < len(sizes) else -(-count // sizes[-1]) * sizes[-1]
