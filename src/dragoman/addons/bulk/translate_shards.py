"""`translate_shards`: translates many files on a Ray cluster. An interrupted run can be resumed."""

import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Unpack, get_args

from dragoman.addons.bulk.actor import EndOfShard, Failure, TranslatedWindow
from dragoman.addons.bulk.cluster import Actors, join_cluster, processors
from dragoman.addons.bulk.job import Inputs, Job, Shard, digest, shards_of, with_absolute_paths
from dragoman.addons.bulk.manifest import CompletedShard, Manifest
from dragoman.addons.bulk.pipeline import is_client, run, run_through_relay
from dragoman.base.cancellation import Cancelled
from dragoman.base.errors import ConfigError, Interrupted
from dragoman.base.files import atomic_file
from dragoman.base.log import info, quietly
from dragoman.base.progress import Progress
from dragoman.decode.decoding import Sampling
from dragoman.engines.choice import AUTOMATIC
from dragoman.engines.registry import Precision
from dragoman.inference.load import translator_of
from dragoman.inference.translation.files.faulty_lines import FaultyLines, on_error_of
from dragoman.inference.translation.files.translated_file import Signal, signals_raise
from dragoman.inference.translation.line_warnings import LineWarnings
from dragoman.inference.translation.request import RequestSettings


@dataclass(frozen=True)
class TranslatedShards:
    """The result of `translate_shards`. shards, records: total numbers in the folder, including earlier calls."""

    folder: Path
    shards: int
    records: int


def translate_shards(
    model: str | Path | Sequence[str | Path],
    inputs: Inputs,
    output: str | Path,
    *,
    cluster: str = "auto",
    actors: int | None = None,
    threads: int | None = None,
    source_field: str | None = None,
    target_field: str | None = None,
    sampling: Sampling | None = None,
    batch_size: int = 64,
    engine: str = "auto",
    precision: str | None = "auto",
    on_error: str = "stop",
    quiet: bool = False,
    **settings: Unpack[RequestSettings],
) -> TranslatedShards:
    """Translate files with Ray Data, as `dragoman translate-shards` does. Each output has the name of its input.

    An output has as many records as its input, in the same order. To resume an interrupted call, repeat it: completed
    shards are skipped. model: a folder, or several for an ensemble; models, inputs and output have the same paths on
    all machines. inputs: files, folders or patterns, with lines of text, JSON Lines (.jsonl) or Parquet (.parquet);
    lines may be compressed. output: a folder for the results and their manifest.

    cluster: as in `join_cluster`. actors: number of processes, each with a copy of the model (default: as many as fit).
    threads: number of threads per actor (default: the number of processors of the smallest machine). source_field,
    target_field: for JSON Lines and Parquet, the field to translate and the new field for the translation (default:
    translation); other fields are kept. sampling: draw one translation per record instead of searching. The remaining
    arguments are as in `translate_file`.

    Raises DataError for files that are missing, unreadable or changed; ConfigError for invalid settings and for a
    folder with other content; ModelError if a machine has a different model; ResourceError if the disk is full or
    actors end repeatedly; Interrupted after Ctrl-C or SIGTERM. Completed shards are kept.

    >>> from dragoman import translate_shards
    >>> done = translate_shards("runs/ende", ["valid.en", "test.en"], "translated", beam=1, quiet=True)
    >>> done.shards, done.records
    (2, 120)
    """
    output = Path(output).absolute()
    models = (model,) if isinstance(model, str | Path) else tuple(model)
    folders = tuple(Path(folder).absolute() for folder in models)
    if sampling is not None and sampling.samples != 1:
        raise ConfigError("only one translation per record is written: set the number of samples to 1")
    shards = shards_of(inputs, output, source_field, target_field)
    checked_on_error = on_error_of(on_error)
    with quietly(quiet):
        translator = translator_of(folders, "cpu", engine=engine, precision=precision)
        FaultyLines(translator, checked_on_error)  # raises ConfigError if the model does not support `on_error`
        request = with_absolute_paths(translator.request(sampling=sampling, **settings))
        if precision == AUTOMATIC and translator.engine.precision in get_args(Precision):
            precision = translator.engine.precision  # the same on all machines
        job = Job(folders, (), request, batch_size, engine, precision, 1, checked_on_error, {})
        job = replace(job, settings=job.dependencies(translator))
        del translator  # free its memory: each actor loads the model itself
        recorded = {**job.settings, "source_field": source_field, "target_field": target_field}
        with Manifest(output, recorded) as manifest:
            remaining = tuple(_remaining(shards, manifest))
            if remaining:
                _run(replace(job, shards=remaining), manifest, len(shards), cluster, actors=actors, threads=threads)
            elif shards:
                info(f"All {len(shards):,} shard(s) were completed earlier.")
            return TranslatedShards(
                output, len(shards), sum(manifest.completed[shard.name].records for shard in shards)
            )


def _remaining(shards: Sequence[Shard], manifest: Manifest) -> Iterator[Shard]:
    """Yield the shards to translate. Raises ConfigError if the input or output of a completed shard has changed."""
    with Progress("Checking completed shards", "shards", len(shards), lines=False) as progress:
        for index, shard in enumerate(shards):
            progress.update(index)
            completed = manifest.completed.get(shard.name)
            if completed is None or not shard.target.exists():
                yield shard
            elif shard.target.stat().st_size != completed.size:
                raise ConfigError(f"{shard.target} has changed since it was completed: delete it to translate it again")
            elif digest(shard.source) != completed.digest:
                raise ConfigError(
                    f"{shard.source} has changed since it was translated: delete {shard.target} to translate it again"
                )


def _run(job: Job, manifest: Manifest, shards: int, cluster: str, *, actors: int | None, threads: int | None) -> None:
    """Translate the shards of a job. shards: their number, including completed shards."""
    completed = shards - len(job.shards)
    if completed:
        info(f"Resuming: {completed:,} of {shards:,} shards are completed.")
    remaining = {shard.name for shard in job.shards}
    line_warnings = LineWarnings(
        sum((Counter(shard.counts) for name, shard in manifest.completed.items() if name not in remaining), Counter())
    )
    try:
        with join_cluster(cluster) as ray, signals_raise():
            size = Actors.of(processors(ray), actors, threads)
            info(f"Translating with {size.count} actor(s) of {size.threads} thread(s) each.")
            sized = replace(job, threads=size.threads)
            with (
                closing(run_through_relay(ray, sized, size) if is_client(ray) else run(sized, size)) as rows,  # type: ignore[type-var]
                Progress("Translating", "lines", closes=True) as progress,
            ):
                for index, shard in enumerate(job.shards):
                    done = f"{completed + index:,} of {shards:,} shards completed"
                    record = partial(_update, progress, done)
                    manifest.add(shard.name, _write(shard, _items(rows, index), line_warnings, record))
    except (Signal, Cancelled) as stop:
        raise Interrupted(
            f"interrupted: {len(manifest.completed):,} of {shards:,} shards are completed. Repeat the command to "
            "resume",
            stop.number if isinstance(stop, Signal) else signal.SIGINT,
        ) from None
    finally:
        line_warnings.report()


def _update(progress: Progress, status: str, records: int) -> None:
    """Report further translated records. status: the number of completed shards."""
    done = progress.done + records
    progress.update(done, f"{done:,} lines, {status}")


def _write(
    shard: Shard,
    items: Iterator[TranslatedWindow | EndOfShard],
    line_warnings: LineWarnings,
    record: Callable[[int], None],
) -> CompletedShard:
    """Write a shard. record: called with the number of records of each window."""
    records, counts = 0, line_warnings.window()
    with atomic_file(shard.target) as file, shard.format.writer(shard.source, file) as write:
        for item in items:
            if isinstance(item, EndOfShard):
                end = item
                continue
            if item.first != records + 1:
                raise RuntimeError(f"{shard.name}: record {item.first} came after {records}")
            write(item.part)
            records += item.records
            for what, number in item.notes:
                line_warnings.note(what, f"{shard.name}:{number}")
            record(item.records)
        if end.records != records:
            raise RuntimeError(f"{shard.name}: received {records} of {end.records} records")
    return CompletedShard(end.digest, records, shard.target.stat().st_size, dict(counts))


def _items(rows: Iterator[tuple[int, Any]], index: int) -> Iterator[TranslatedWindow | EndOfShard]:
    """Yield the items of the shard with this index, up to its end. Raises the error of a `Failure`."""
    for shard_index, item in rows:
        if shard_index != index:
            break
        if isinstance(item, Failure):
            raise item.kind(item.message)
        yield item
        if isinstance(item, EndOfShard):
            return
    raise RuntimeError(f"the results of remaining shard {index} are incomplete")
