"""`translate_shards`: many files through a model, on the machines of a Ray cluster, to be gone on with after a kill."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from dragoman.base.errors import ConfigError, Interrupted
from dragoman.base.files import atomic_file
from dragoman.base.log import info, quietly
from dragoman.base.progress import Work
from dragoman.translation.bulk.actor import End, Failure, Translated
from dragoman.translation.bulk.cluster import Actors, joined_cluster, processors
from dragoman.translation.bulk.job import Job, with_absolute_paths
from dragoman.translation.bulk.manifest import Done, Manifest
from dragoman.translation.bulk.pipeline import run
from dragoman.translation.bulk.relay import is_client, relayed_run
from dragoman.translation.bulk.shard import Inputs, Shard, digest, shards_of
from dragoman.translation.files.faulty_lines import FaultyLines, on_error_of
from dragoman.translation.files.noted_lines import NotedLines
from dragoman.translation.files.translated_file import Signal, signals_raise
from dragoman.translation.request import RequestSettings, Sampling
from dragoman.translation.translator import Translator


@dataclass(frozen=True)
class TranslatedShards:
    """folder: where they are; shards, records: how many, those of earlier calls too."""

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
    precision: str | None = None,
    on_error: str = "stop",
    quiet: bool = False,
    **settings: Unpack[RequestSettings],
) -> TranslatedShards:
    """Translate files with Ray Data, as `dragoman translate --cluster` does: each becomes one of the same name.

    A shard of N records becomes one of N, in order. A call that was stopped goes on when it is made again: shards that
    are done are not done again. model: a folder, or several that translate together; models, inputs and output have
    the same paths on each machine. inputs: files, folders and patterns, of text lines, JSON Lines (.jsonl) and Parquet
    (.parquet); lines may be compressed. output: a folder for the results and their manifest.

    cluster: as in `joined_cluster`. actors: processes that hold the model (default: as many as there is room for);
    threads: that each computes with (default: the processors of the smallest machine). source_field, target_field: of
    JSON Lines and Parquet, what is translated and where the translation goes (default: translation); other fields stay.
    sampling: draw a translation a record instead of searching. The others are as in `translate_file`.

    Raises DataError for files that are missing, unreadable or changed, ConfigError for settings that make no sense and
    a folder that holds other work, ModelError where a machine would translate with another model, ResourceError where
    the disk is full or actors end again and again, Interrupted after Ctrl-C or SIGTERM, with what is done kept.
    """
    output = Path(output).absolute()
    given = (model,) if isinstance(model, str | Path) else tuple(model)
    folders = tuple(Path(folder).absolute() for folder in given)
    if sampling is not None and sampling.samples != 1:
        raise ConfigError("one translation of each record is written: give a sampling of one sample")
    shards = shards_of(inputs, output, source_field, target_field)
    checked = on_error_of(on_error)
    with quietly(quiet):
        translator = Translator.load(folders, "cpu", engine, precision)
        FaultyLines(translator, checked)
        request = with_absolute_paths(translator.request(sampling=sampling, **settings))
        job = Job(folders, (), request, batch_size, engine, precision, 1, checked, {})
        job = replace(job, settings=job.found(translator))
        del translator  # the actors have theirs
        kept = {**job.settings, "source_field": source_field, "target_field": target_field}
        with Manifest(output, kept) as manifest:
            left = tuple(_left(shards, manifest))
            if left:
                _run(replace(job, shards=left), manifest, len(shards), cluster, actors, threads)
            elif shards:
                info(f"All {len(shards):,} shard(s) are done already.")
            return TranslatedShards(output, len(shards), sum(manifest.done[shard.name].records for shard in shards))


def _left(shards: Sequence[Shard], manifest: Manifest) -> Iterator[Shard]:
    """The shards that are not done. Raises ConfigError for one that is, and whose input or output is another now."""
    with Work("Looking at what is done", "shards", len(shards), lines=False) as work:
        for place, shard in enumerate(shards):
            work.tell(place)
            done = manifest.done.get(shard.name)
            if done is None or not shard.target.exists():
                yield shard
            elif shard.target.stat().st_size != done.size:
                raise ConfigError(f"{shard.target} is done but was changed since: delete it, and it is made again")
            elif digest(shard.source) != done.digest:
                raise ConfigError(
                    f"{shard.source} was changed since it was translated: delete {shard.target}, and it is made again"
                )


def _run(job: Job, manifest: Manifest, shards: int, cluster: str, actors: int | None, threads: int | None) -> None:
    """Translate the shards of a job. shards: with those that are done already."""
    before = shards - len(job.shards)
    if before:
        info(f"Going on: {before:,} of {shards:,} shards are done.")
    again = {shard.name for shard in job.shards}
    noted = NotedLines(
        sum((Counter(done.counts) for name, done in manifest.done.items() if name not in again), Counter())
    )
    try:
        with joined_cluster(cluster) as ray, signals_raise():
            size = Actors.of(processors(ray), actors, threads)
            info(f"{size.count} actor(s) of {size.threads} thread(s) translate.")
            sized = replace(job, threads=size.threads)
            with (
                closing(relayed_run(ray, sized, size) if is_client(ray) else run(sized, size)) as rows,  # type: ignore[type-var]
                Work("Translating", "lines", closes=True) as work,
            ):
                for place, shard in enumerate(job.shards):
                    _write(shard, _items(rows, place), manifest, noted, work, f"{before + place:,} of {shards:,}")
    except Signal as stop:
        raise Interrupted(
            f"interrupted; {len(manifest.done):,} of {shards:,} shards are done. Go on with the same command",
            stop.number,
        ) from None
    finally:
        noted.report()


def _write(
    shard: Shard, items: Iterator[Translated | End], manifest: Manifest, noted: NotedLines, work: Work, done: str
) -> None:
    """Write a shard, and enter it. done: how many are, of how many."""
    records, counts = 0, noted.window()
    with atomic_file(shard.target) as file, shard.format.writer(shard.source, file) as write:
        for item in items:
            if isinstance(item, End):
                end = item
                continue
            if item.first != records + 1:
                raise RuntimeError(f"{shard.name}: record {item.first} came after {records}")
            write(item.part)
            records += item.records
            for what, number in item.noted:
                noted.note(what, f"{shard.name}:{number}")
            work.tell(work.done + item.records, f"{work.done + item.records:,} lines, {done} shards done")
        if end.records != records:
            raise RuntimeError(f"{shard.name}: {records} of {end.records} records came")
    manifest.add(shard.name, Done(end.digest, records, shard.target.stat().st_size, dict(counts)))


def _items(rows: Iterator[tuple[int, Any]], place: int) -> Iterator[Translated | End]:
    """What comes of the shard at a place, up to its end. Raises the error that came instead."""
    for where, item in rows:
        if where != place:
            break
        if isinstance(item, Failure):
            raise item.kind(item.message)
        yield item
        if isinstance(item, End):
            return
    raise RuntimeError(f"shard {place} of those that were left has no end")
