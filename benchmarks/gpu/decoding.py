"""Decoding with a randomly initialised Transformer base: the cuda engine, the torch engine's search, transformers."""

import copy
import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from dragoman.base.machine.device import choose_device
from dragoman.decode.prompts import Prompts
from dragoman.decode.rules.length_penalty import MeanLogProbability
from dragoman.decode.search import Hypothesis, SearchConfig, search
from dragoman.engines.cuda.session import CudaRequest, CudaSession, Model
from dragoman.engines.engine import Row
from dragoman.engines.native.request import NativeRequest
from dragoman.models.kinds.encoder_decoder import ModelConfig, Seq2Seq
from dragoman.text.symbols import EOS

VOCABULARY, SOURCE, OUTPUT = 10_000, 20, 25
SIZES = ((1, 1), (1, 5), (64, 1), (64, 5), (512, 1), (512, 5), (2048, 1))
"""Numbers of sentences and beam sizes."""


def base() -> Seq2Seq:
    """Build the base model of Vaswani et al. 2017 on the GPU."""
    torch.manual_seed(1)
    side = {"kind": "transformer", "layers": 6, "heads": 8, "feedforward": 2048, "norm": "post"}
    settings = {"preset": None, "width": 512, "encoder": side, "decoder": side, "dropout": 0.0}
    return ModelConfig.model_validate(settings).build(VOCABULARY, VOCABULARY).eval().cuda()


def config(beam: int) -> SearchConfig:
    """Return a search whose outputs all have the same length."""
    return SearchConfig(
        beam=beam,
        length_penalty=MeanLogProbability(),
        forbid=(0,),
        minimum_length=OUTPUT - 1,
        length_factor=0.0,
        length_margin=OUTPUT,
    )


def milliseconds(compute: Callable[[], object], turns: int) -> float:
    """Return the median time of `turns` calls, after one for warm-up."""
    found = []
    for _ in range(turns + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        compute()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) * 1e3)
    return statistics.median(found[1:])


def engine(model: Model, beam: int, sources: list[list[int]]) -> list[tuple[int, list[Hypothesis]]]:
    """Translate with the cuda engine, from ids to hypotheses."""

    def again(request: CudaRequest) -> list[Hypothesis]:
        raise RuntimeError("a sentence exceeds the range of float16")

    settings = config(beam)
    requests = [CudaRequest(Row(1, "", each, settings), NativeRequest.of(each, (), settings, None)) for each in sources]
    done: list[tuple[int, list[Hypothesis]]] = []
    with CudaSession(model, requests, len(sources), again) as session:
        while session.in_progress:
            done += session.completed(60.0)
    return done


@torch.inference_mode()
def reference(model: Seq2Seq, beam: int, sources: list[list[int]]) -> object:
    """Translate with the search of the torch engine, in float32."""
    tokens = torch.tensor(sources, device="cuda")
    memory = model.encode(tokens, torch.ones_like(tokens, dtype=torch.bool))
    settings = config(beam)
    return search(model.decoder, Prompts.of(model.decoder, memory, settings), settings)


def marian() -> Any:
    """Build transformers' model of the same size in bfloat16; None if transformers is not installed."""
    try:
        from transformers import MarianConfig, MarianMTModel
    except ImportError as error:
        print(f"SKIPPED transformers: {error}")
        return None
    settings = MarianConfig(
        vocab_size=VOCABULARY,
        d_model=512,
        encoder_layers=6,
        decoder_layers=6,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=2048,
        decoder_ffn_dim=2048,
        activation_function="relu",
        pad_token_id=0,
        eos_token_id=2,
        bos_token_id=1,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
        max_position_embeddings=512,
    )
    return MarianMTModel(settings).eval().cuda().to(torch.bfloat16)


def peer(model: Any, beam: int, sources: list[list[int]]) -> object:
    """Translate with transformers."""
    tokens = torch.tensor(sources, device="cuda")
    settings = {"num_beams": beam, "do_sample": False, "max_new_tokens": OUTPUT, "min_new_tokens": OUTPUT}
    with torch.inference_mode():
        return model.generate(input_ids=tokens, attention_mask=torch.ones_like(tokens), **settings)


def step(model: Model, beam: int) -> float:
    """Return the milliseconds of one captured step with the most recently used slots."""
    captured = next(each for sizes, each in reversed(model._unused.items()) if sizes.beam == beam)

    @torch.inference_mode()
    def ten() -> None:
        captured.run(10)

    return milliseconds(ten, 3) / 10


def decoding(turns: int) -> None:
    """Print a row per number of sentences and beam size."""
    choose_device("cuda")
    exact, other = base(), marian()
    half, full = Model(copy.deepcopy(exact).half(), VOCABULARY), Model(exact, VOCABULARY)
    chance = random.Random(2)
    for count, beam in SIZES:
        sources = [[*(chance.randrange(4, VOCABULARY) for _ in range(SOURCE - 1)), EOS] for _ in range(count)]
        ours = milliseconds(partial(engine, half, beam, sources), turns)
        single = milliseconds(partial(engine, full, beam, sources), turns)
        torch_ = milliseconds(partial(reference, exact, beam, sources), turns)
        row = f"DECODING {count:5} beam {beam}: cuda float16 {ours:7.1f} ms = {count / ours * 1e3:9,.0f} sentences/s"
        row += f", float32 {single:7.1f} ms, torch {torch_:7.1f} ms, step {step(half, beam):.3f} ms"
        if other is not None:
            theirs = milliseconds(partial(peer, other, beam, sources), turns)
            row += f", transformers {theirs:7.1f} ms, ratio {theirs / ours:5.2f}"
        print(row, flush=True)
