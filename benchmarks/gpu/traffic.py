"""Launches and memory traffic of a training update, counted on tensors without values: this needs no GPU.

Every operation that is not a view is one launch that reads its arguments and writes its results once; a kernel of
`nn.kernels` likewise. Matrix products run at three quarters of the peak rate, the rest at the memory's bandwidth. The
sum is a bound from below: idle gaps between launches, and caches, are not counted.
"""

import gzip
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from dragoman.data.batches.batch import Batch, collate
from dragoman.data.batches.plan import BatchConfig, plan_epoch
from dragoman.data.batches.shapes import BatchShapes
from dragoman.models.kinds.encoder_decoder import ModelConfig
from dragoman.nn.kernels import choice
from dragoman.nn.kernels.gpu import attention, cross_entropy, linear, residual, sums
from dragoman.tasks.corpora.job import flops_per_target_token
from dragoman.text.tokenizers import VocabularySizes
from dragoman.training.objectives import fused_cross_entropy
from dragoman.training.objectives.cross_entropy import CrossEntropy
from dragoman.training.objectives.objective import TrainingPoint
from dragoman.training.ranks.ranks import Runtime
from dragoman.training.updates.captured import CapturedPasses

PEAK, BANDWIDTH = 835e12, 3.9e12
"""Measured on an H200: FLOP/s of a large product in bfloat16, bytes per second of a copy."""

VIEWS = frozenset(
    "view t transpose permute expand slice select unsqueeze squeeze detach alias _unsafe_view as_strided split unbind"
    " lift_fresh empty empty_like empty_strided new_empty new_empty_strided _reshape_alias is_same_size".split()
)
OPTIMISER_BYTES = 4 * (2 + 2 + 2 + 7)
"""Per parameter: the shared gradient, its copy, norm and clipping, fused Adam."""


class Count(TorchDispatchMode):
    """Counts launches, bytes and floating-point operations."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.operations = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        result = function(*arguments, **(keywords or {}))
        if all(each.device.type == "cpu" for each in tree_leaves(result) if isinstance(each, Tensor)):
            return result
        name = function._schema.name.split("::")[1].rstrip("_")
        if name in VIEWS or (name == "_to_copy" and arguments[0].dtype == result.dtype):
            return result
        tensors = [each for each in tree_leaves((arguments, keywords, result)) if isinstance(each, Tensor)]
        size = sum(_size(each) for each in tensors)
        if name in ("embedding", "index_select", "gather"):  # reads only the rows that it returns
            size = 2 * sum(_size(each) for each in tree_leaves(result)) + sum(_size(each) for each in tensors[1:-1])
        if name.startswith("_foreach"):  # several launches that read and write everything
            self.launches[name] += -(-len(tensors) // 60) - 1
        self.add(name, size, function, arguments, keywords, result)
        return result

    def add(self, name: str, size: int, function: Any = None, *call: Any) -> None:
        """Count one launch."""
        self.launches[name] += 1
        if name == "_addmm_activation":  # torch counts no operations for it
            function = torch.ops.aten.addmm.default
        if function is not None and function.overloadpacket in flop_registry:
            arguments, _, result = call
            self.operations += flop_registry[function.overloadpacket](*arguments, out_val=result)
            return
        self.bytes[name] += size


def _size(tensor: Tensor) -> int:
    stored = [size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride]
    return math.prod(stored) * tensor.element_size()


@contextmanager
def counted_kernels(count: Count) -> Iterator[None]:
    """Count launches of the kernels of `nn.kernels` instead of running them."""

    def stand_in(name: str) -> Any:
        def launch(*arguments: Any, **_: Any) -> None:
            tensors = {each.data_ptr() or id(each): each for each in arguments if isinstance(each, Tensor)}
            count.add(name, sum(_size(each) for each in tensors.values()))

        class Launcher:
            def __getitem__(self, grid: Any) -> Callable[..., None]:
                return launch

        return Launcher()

    helpers = SimpleNamespace(
        cdiv=lambda one, other: -(-one // other), next_power_of_2=lambda size: 1 << (size - 1).bit_length()
    )
    names = {
        attention: ("_forward", "_backward"),
        residual: ("_dropout", "_add", "_norm", "_norm_backward"),
        linear: ("_sum_columns",),
        cross_entropy: ("_differentiate",),
    }
    with ExitStack() as stack:
        for module, kernels in names.items():
            stack.enter_context(mock.patch.object(module, "triton", helpers))
            for kernel in kernels:
                stack.enter_context(mock.patch.object(module, kernel, stand_in(kernel), create=True))
        stack.enter_context(mock.patch.object(sums, "triton", helpers))
        stack.enter_context(mock.patch.object(sums, "_sum_parts", stand_in("_sum_parts"), create=True))
        stack.enter_context(mock.patch.object(fused_cross_entropy, "_CHUNK_ROWS", fused_cross_entropy._GPU_CHUNK_ROWS))
        for module in (choice, fused_cross_entropy):
            stack.enter_context(mock.patch.object(module, "kernels_run", return_value=True))
        stack.enter_context(mock.patch.object(torch, "is_autocast_enabled", return_value=False))
        stack.enter_context(mock.patch.object(torch, "autocast", return_value=nullcontext()))
        yield


def multi30k_batch(tokens: int, vocabulary: int) -> tuple[Batch, Any]:
    """Return a packed batch with the lengths of Multi30k's sentences, and the lengths."""
    folder = Path(os.environ["DRAGOMAN_DATA"]) / "multi30k"
    sides = []
    for language in ("en", "de"):
        with gzip.open(folder / f"train.{language}.gz", "rt", encoding="utf-8") as file:
            sides.append([round(1.15 * len(line.split())) + 1 for line in file])
    lengths = np.array(sides, np.int32).T
    plan = plan_epoch(lengths, BatchConfig(tokens=tokens, packed=True, few_shapes=True), 1, 0)
    rows = plan.batches[len(plan.batches) // 2]
    draw = np.random.default_rng(0)
    source, target = [
        [draw.integers(4, vocabulary, size=int(count)) for count in lengths[rows, side]] for side in (0, 1)
    ]
    shapes = BatchShapes(tuple((lengths.max(0) + 1).tolist()), tokens)
    return shapes.apply(collate(source, target, rows.tolist())), lengths


def traffic(model: str, tokens: int, vocabulary: int) -> None:
    """Print launches, bytes and the bound of an update of a preset."""
    if "DRAGOMAN_DATA" not in os.environ:
        print("SKIPPED traffic: set DRAGOMAN_DATA to the folder that contains multi30k/")
        return
    config = ModelConfig.model_validate({"preset": model, "dropout": 0.1})
    batch, lengths = multi30k_batch(tokens, vocabulary)
    work = flops_per_target_token(config, VocabularySizes(vocabulary, vocabulary), lengths) * batch.target_tokens
    built = config.build(vocabulary, vocabulary).train().to("meta")
    runtime = Runtime(torch.device("meta"), torch.bfloat16)
    passes = CapturedPasses(built, CrossEntropy(0.1), runtime, lambda _: NotImplemented)
    passes._discard_outdated(1.0)
    count = Count()
    with counted_kernels(count), count:
        passes._compute(batch.map_tensors(lambda tensor: tensor.to("meta")), TrainingPoint())
    parameters = sum(each.numel() for each in built.parameters())
    products, other = count.operations / PEAK / 0.75, sum(count.bytes.values()) / BANDWIDTH
    optimiser = parameters * OPTIMISER_BYTES / BANDWIDTH
    bound = products + other + optimiser
    print(
        f"{model}, {tokens:,} tokens, vocabulary {vocabulary:,}: {sum(count.launches.values()):,} launches, "
        f"{sum(count.bytes.values()) / 1e9:.1f} GB beside the products; products {products * 1e3:.1f} ms, other "
        f"{other * 1e3:.1f} ms, optimiser {optimiser * 1e3:.1f} ms: at most {work / PEAK / bound:.0%} MFU"
    )
    print(f"    launches: {dict(count.launches.most_common(14))}")
    for name, size in count.bytes.most_common(14):
        print(f"    {size / BANDWIDTH * 1e3:6.2f} ms {count.launches[name]:5}x {name}")
