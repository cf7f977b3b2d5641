"""Worker processes: their results, and their replacement when they are killed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from forked_prefork import forking_preforks
from small_vocabularies import KINDS, small_tokenizer
from tiny_model import tiny_config, write_tiny_model
from training_runs import Server
from waiting import PATIENCE, has_ended, wait_until

from dragoman.addons.serving.config import EngineConfig, ModelConfig
from dragoman.addons.serving.models.prefork import Failure, WorkerSpec, warm_up_texts
from dragoman.addons.serving.models.worker_pool import WorkerPool
from dragoman.base.cancellation import Cancellation, Cancelled
from dragoman.base.errors import LineError, ModelError, ResourceError
from dragoman.inference.translation.request import TextRequest
from dragoman.inference.translation.translator import Translator
from dragoman.text.unknown_tokens import UnknownTokens

TEXTS = ["a dog runs", "two dogs", "a cat and a dog"]


def spec(folder: Path, **settings: Any) -> WorkerSpec:
    return WorkerSpec(ModelConfig(path=folder), EngineConfig(name="torch", threads=1, workers=2, **settings))


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("workers") / "model"
    write_tiny_model(folder)
    found = Translator.load(folder, engine="torch")
    found.folder = folder  # type: ignore[attr-defined]
    return found


@pytest.fixture(scope="module", autouse=True)
def forked(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Fork the processes that load models from one that has imported everything."""
    with forking_preforks(server, str(tmp_path_factory.mktemp("preforks") / "socket")):
        yield


@pytest.fixture(scope="module")
def pool(forked: None, translator: Translator) -> Iterator[WorkerPool]:
    made = WorkerPool(spec(translator.folder), 2, translator.tokenizers.target)  # type: ignore[attr-defined]
    yield made
    made.close()


def lines(translator: Translator, **settings: object) -> list[TextRequest]:
    request = translator.request(**settings)  # type: ignore[arg-type]
    return [(text, request) for text in TEXTS]


def texts(pool: WorkerPool, asked: list[TextRequest]) -> list[list[str]]:
    return [[each.text for each in found] for found in pool.translate(asked)]


def pids(pool: WorkerPool) -> list[int]:
    return [worker.pid for worker in pool._processes.workers]


def kill(process: int) -> None:
    """Kill a process, which may have ended already."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def kill_all(pool: WorkerPool) -> None:
    """Kill the workers, and wait for their ends."""
    killed = pids(pool)
    for pid in killed:
        kill(pid)
    wait_until(lambda: all(has_ended(pid) for pid in killed))


def test_workers_give_the_results_of_the_translator(translator: Translator, pool: WorkerPool) -> None:
    assert pool.is_shared
    for settings in ({}, {"beam": 3, "nbest": 2}, {"guard": True}, {"constraints": ["hund"]}, {"keep": ["all"]}):
        asked = lines(translator, **settings)
        wanted = translator.translate_nbest(TEXTS, translator.request(**settings))  # type: ignore[arg-type]
        found = list(pool.translate(asked))
        assert found == wanted, settings
        assert [[each.tokens for each in some] for some in found] == [[each.tokens for each in some] for some in wanted]


@pytest.mark.slow
def test_processes_end_when_the_pool_is_garbage_collected(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The prefork process is a new one, as in a server."""
    monkeypatch.setattr("dragoman.addons.serving.models.worker_pool.subprocess", subprocess)
    pool = WorkerPool(spec(translator.folder), 1, translator.tokenizers.target)  # type: ignore[attr-defined]
    processes = [*pids(pool), pool._processes.prefork._process.pid]
    del pool
    wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in processes))


@pytest.mark.slow
def test_killed_again_and_again(translator: Translator, pool: WorkerPool) -> None:
    asked = lines(translator)
    wanted = texts(pool, asked)
    first, over, wrong = set(pids(pool)), threading.Event(), list[object]()

    def ask() -> None:
        while not over.is_set():
            try:
                if (found := texts(pool, asked)) != wanted:
                    wrong.append(found)
            except ResourceError:  # both processes that had received it were killed
                pass
            except Exception as error:
                wrong.append(error)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            for pid in pids(pool)[:1]:
                kill(pid)
            time.sleep(0.1)
    finally:
        over.set()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert not wrong
    assert texts(pool, asked) == texts(pool, asked) == wanted
    assert len(pids(pool)) == 2 and set(pids(pool)) != first


def test_the_prefork_process_is_killed_too(translator: Translator, pool: WorkerPool) -> None:
    asked = lines(translator)
    wanted = texts(pool, asked)
    for pid in (pool._processes.prefork._process.pid, *pids(pool)):
        kill(pid)
    assert texts(pool, asked) == texts(pool, asked) == wanted


def test_lines_that_kill_every_process(translator: Translator, pool: WorkerPool) -> None:
    asked = lines(translator)
    wanted = texts(pool, asked)
    before = pool._processes.new_worker

    def fatal() -> object:
        worker = before()
        plain = worker.translate

        def translate(*arguments: object) -> object:
            kill(worker.pid)
            wait_until(lambda: has_ended(worker.pid))
            return plain(*arguments)  # type: ignore[arg-type]

        worker.translate = translate  # type: ignore[method-assign, assignment]
        return worker

    pool._processes.new_worker = fatal  # type: ignore[method-assign, assignment]
    kill_all(pool)
    with pytest.raises(ResourceError, match="several worker processes ended"):
        texts(pool, asked)
    pool._processes.new_worker = before  # type: ignore[method-assign]
    kill_all(pool)
    assert texts(pool, asked) == texts(pool, asked) == wanted


def test_workers_that_cannot_be_replaced_for_a_while(translator: Translator, pool: WorkerPool) -> None:
    asked = lines(translator)
    wanted = texts(pool, asked)
    before = pool._processes.new_worker

    def faulty() -> object:
        raise RuntimeError("a fault")

    pool._processes.new_worker = faulty  # type: ignore[method-assign, assignment]
    kill_all(pool)
    for _ in range(3):
        with pytest.raises(ResourceError):
            texts(pool, asked)
    pool._processes.new_worker = before  # type: ignore[method-assign]
    assert texts(pool, asked) == texts(pool, asked) == wanted


def test_errors_of_workers_are_raised(translator: Translator, pool: WorkerPool, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="none"):
        WorkerPool(spec(tmp_path / "none"), 2, translator.tokenizers.target)

    with pytest.raises(LineError, match="blank line cannot have required phrases") as raised:
        texts(pool, [("", translator.request(constraints=["Hund"]))])
    assert raised.value.index == 0
    assert texts(pool, lines(translator))  # the pool continues

    class Odd(Exception):
        pass

    assert "Odd: strange" in str(Failure.of(Odd("strange")).error)
    assert isinstance(Failure.of(ModelError("damaged")).error, ModelError)


@pytest.mark.slow
def test_a_worker_that_hangs_is_killed(translator: Translator, capsys: pytest.CaptureFixture[str]) -> None:
    """The worker is stopped, like one that waits for a lock forever; another one gets its batch."""
    pool = WorkerPool(spec(translator.folder), 1, translator.tokenizers.target)  # type: ignore[attr-defined]
    try:
        asked = lines(translator)
        wanted = texts(pool, asked)
        (hanging,) = pids(pool)
        os.kill(hanging, signal.SIGSTOP)
        pool._spec = spec(translator.folder, worker_seconds=4)  # type: ignore[attr-defined]
        assert texts(pool, asked) == wanted
        assert "no result for 4 s" in capsys.readouterr().err and pids(pool) != [hanging]
        wait_until(lambda: not Path(f"/proc/{hanging}").exists())
    finally:
        pool.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the memory of a process so")
def test_memory_of_a_worker_is_limited(tmp_path: Path) -> None:
    """An allocation beyond the limit is an error; the worker survives and translates smaller batches."""
    write_tiny_model(tmp_path, config=tiny_config(width=64, encoder={"layers": 1, "heads": 2, "feedforward": 8192}))
    translator = Translator.load(tmp_path, engine="torch")
    narrow = WorkerPool(spec(tmp_path, worker_megabytes=20), 1, translator.tokenizers.target)
    request = translator.request(beam=1, search={"maximum_length": 2})
    long = " ".join(TEXTS * 100)
    assert len(translator.tokenizers.source.encode(long)) * 8192 * 4 > 30_000_000, "one layer's bytes"
    try:
        assert len(translator.translate_nbest([long], request)) == 1, "without a limit there is enough"
        before = pids(narrow)
        with pytest.raises(ResourceError):
            texts(narrow, [(long, request)])
        ((found,),) = narrow.translate([(TEXTS[0], request)])
        ((expected,),) = translator.translate_nbest(TEXTS[:1], request)
        assert found.ids == expected.ids  # the scores depend on the number of threads, in the seventh digit
        assert pids(narrow) == before
    finally:
        narrow.close()


def test_a_limit_of_workers_needs_workers() -> None:
    with pytest.raises(ValueError, match="set workers"):
        EngineConfig(worker_megabytes=100)


def test_a_cancelled_batch_ends_and_keeps_its_worker(translator: Translator, pool: WorkerPool) -> None:
    before, cancellation = pids(pool), Cancellation()
    asked = lines(translator)
    expected = texts(pool, asked)

    def translate() -> None:
        with cancellation.active():
            for _ in pool.translate(asked * 200):
                cancellation.cancel()

    with pytest.raises(Cancelled):
        translate()
    assert texts(pool, asked) == expected and pids(pool) == before


def test_further_workers_are_used_by_their_own_lines_only(pool: WorkerPool, translator: Translator) -> None:
    further = pool.extended(1)
    try:
        assert further.precision == pool.precision == "float32" and further.is_shared
        idle = [pool._idle.get() for _ in range(2)]  # the workers of the pool are busy
        assert texts(further, lines(translator)) == [[text] for text in translator.translate(TEXTS)]
        for worker in idle:
            pool._idle.put(worker)
        further.close()
        assert texts(pool, lines(translator)) == [[text] for text in translator.translate(TEXTS)]
        worker = further._idle.get()
        kill(worker.pid)
        further._idle.put(worker)
        assert texts(further, lines(translator)) == [[text] for text in translator.translate(TEXTS)]
    finally:
        pool._processes.end(further._idle.get())


@pytest.mark.parametrize("kind", KINDS)
def test_the_texts_that_warm_up_a_model_have_no_unknown_tokens(kind: str) -> None:
    tokenizer = small_tokenizer(kind, ["a dog runs .", "a cat sleeps ."], [])
    short, long = warm_up_texts(tokenizer)
    assert UnknownTokens.of(tokenizer.encode_batch([short, long])).unknown == 0
    assert 0 < len(tokenizer.encode(short)) < len(tokenizer.encode(long))
