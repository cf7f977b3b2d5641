"""The reference of settings as Markdown pages, each setting under a heading of its own."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dragoman.addons.serving.config import ServeConfig
from dragoman.base.settings.reference import NAME, Section, sections
from dragoman.base.settings.shared_groups import Occurrence, SharedGroup, Variant, share
from dragoman.cli.settings_addresses import INDEX, PAGES, anchor_of, join_keys, page_of


class SettingsPages:
    """The pages of all settings. runs: sections by kind of run."""

    def __init__(self, runs: Mapping[str, Sequence[Section]]) -> None:
        self.groups = share(runs)
        self._by_path = {group.path: group for group in self.groups}

    def texts(self) -> dict[str, str]:
        """Return the text of each page by its name, without the title and what precedes the settings."""
        groups = {
            name: [self._section(group, name) for group in self.groups if page_of(group.path) == name]
            for name in (INDEX, *PAGES)
        }
        groups[INDEX].insert(0, _listed_pages())
        return {name: "\n\n".join(texts) + "\n" for name, texts in groups.items()}

    def on_one_page(self) -> str:
        """Return the text of all groups, for settings of another kind than those of runs."""
        return "\n\n".join(self._section(group, INDEX) for group in self.groups) + "\n"

    def _section(self, group: SharedGroup, page: str) -> str:
        """Return the text of a group: where it holds, its kinds, its settings.

        Settings that only some tasks have are below those of all tasks, under a heading with these tasks.
        """
        title = f"`{group.path}`" if group.path else "The top level"
        parts = [f"## {title}", *self._setting_at(group.path, page)]
        if (runs := self._only_in(group)) is not None:
            parts.append(runs)
        parts += self._summaries(group, page)
        keys = {name: join_keys(group.path, name) for name in group.names if name != "kind"}
        inner = {name: path for name, key in keys.items() if (path := self._group_at(key)) is not None}
        if inner:
            parts.append(f"Groups inside: {', '.join(self._link(path, page) for path in inner.values())}.")
        tasks = {name: self._tasks_with(group, name) for name, key in keys.items() if inner.get(name) != key}
        counts = Counter(tasks.values())
        tasks = {name: each if counts[each] > 1 else "" for name, each in tasks.items()}  # else named at the setting
        for common in dict.fromkeys(["", *tasks.values()]):
            if common:
                parts.append(f"### {title} with {common}")
            for name in [name for name, each in tasks.items() if each == common]:
                parts.append(f"{'####' if common else '###'} `{keys[name]}`")
                parts += self._setting(group, name, page, named=common)
        return "\n\n".join(parts)

    def _group_at(self, key: str) -> str | None:
        """Return the path at which the groups inside a setting are listed, or None if they are listed elsewhere."""
        return next((path for path in (key, f"{key}.{NAME}") if path in self._by_path), None)

    def _tasks_with(self, group: SharedGroup, name: str) -> str:
        """Return the tasks that alone have a setting; empty if all have it, or if it has several forms."""
        variants = group.with_setting(name)
        condition = self._used_in(group, variants)
        is_plain = len(_forms(variants, name)) == 1 and condition == self._tasks_alone(group, variants)
        return condition if is_plain else ""

    def _setting_at(self, path: str, page: str) -> list[str]:
        """Return the text of the setting that holds a group, if a group is listed that has it."""
        parent, _, name = path.rpartition(".")
        group = self._by_path.get(parent) if path else None
        if group is None or not group.with_setting(name):
            return []
        return self._setting(group, name, page, is_head=True)

    def _only_in(self, group: SharedGroup) -> str | None:
        """Return a line with the tasks that have a group, or None if the text above implies it.

        That is the case if all tasks with the group around it have it, or if the forms of its setting name the tasks.
        """
        around, _, name = group.path.rpartition(".")
        parent = self._by_path.get(around) if group.path else None
        own = _runs(place for each in group.variants for place in each.at(group.path))
        tasks = [] if parent is None else _runs(place for each in parent.variants for place in each.at(around))
        if not group.path or set(own) == set(tasks) or (parent and set(own) == _named_by_forms(parent, name)):
            return None
        return f"Only with {_tasks(own, tasks)}."

    def _summaries(self, group: SharedGroup, page: str) -> list[str]:
        """Return the summaries of a group, one for each variant unless all are equal, with its other places."""
        if not group.path:
            return []  # the summaries of `task` say the same
        texts = {}
        for variant in group.variants:
            also = self._other_places(variant)
            texts[self._label(group, variant)] = _escape(variant.summary) + (f" Also at {also}." if also else "")
        if len(set(texts.values())) == 1 and None in {variant.kind for variant in group.variants}:
            return [next(iter(texts.values()))]
        return ["\n".join(f"- {label}: {text}" for label, text in texts.items())]

    def _label(self, group: SharedGroup, variant: Variant) -> str:
        """Return what distinguishes a variant from the others of its group: kind, tasks or group around it."""
        rivals = [each for each in group.variants if each is not variant and each.kind == variant.kind]
        own = variant.at(group.path)
        condition = _condition(own, [place for each in rivals for place in each.at(group.path)]) if rivals else ""
        return " with ".join(filter(None, [f"`{variant.kind}`" if variant.kind else "", condition]))

    def _other_places(self, variant: Variant) -> str:
        """Return the other places of a variant, without those that follow from the other places of groups around it."""
        texts = []
        for path in variant.paths:
            if path != variant.path and not self._follows(variant.path, path):
                others = [
                    place
                    for group in self.groups
                    for each in group.variants
                    if each is not variant and (each.kind == variant.kind or None in (each.kind, variant.kind))
                    for place in each.at(path)
                ]
                condition = _condition(variant.at(path), others) if others else ""
                texts.append(f"`{path}`" + (f" ({condition})" if condition else ""))
        return ", ".join(texts)

    def _follows(self, listed: str, other: str) -> bool:
        """Return whether a group listed at one path is at the other because a group around it is."""
        names, other_names = listed.split("."), other.split(".")
        for count in range(1, min(len(names), len(other_names))):
            if names[-count:] != other_names[-count:]:
                return False
            around, other_around = ".".join(names[:-count]), ".".join(other_names[:-count])
            group = self._by_path.get(around)
            if group is not None and any(other_around in variant.paths for variant in group.variants):
                return True
        return False

    def _setting(
        self, group: SharedGroup, name: str, page: str, *, is_head: bool = False, named: str = ""
    ) -> list[str]:
        """Return the text of a setting: type, default, where it holds, description; once for each of its forms.

        is_head: whether the text stands at the head of the group that is the value of the setting. named: the tasks in
        the heading above, which are not repeated.
        """
        forms = _forms(group.variants, name)
        heads = []
        for (type_text, _), uses in forms.items():
            condition = self._used_in(group, [variant for variant, _ in uses], is_head and len(forms) == 1)
            default = _defaults(uses, group.path)
            heads.append((condition, f"*{', '.join(filter(None, [type_text, default]))}*"))
        descriptions = [_escape(description) for _, description in forms]
        if len(forms) == 1:
            (condition, head), *_ = heads
            parts = [head + (f"; only with {condition}" if condition not in ("", named) else ""), *descriptions]
        elif len(set(descriptions)) == 1:
            parts = ["\n".join(f"- {condition}: {head}" for condition, head in heads), descriptions[0]]
        else:
            lines = [
                f"- {condition}: {head}. {text}" for (condition, head), text in zip(heads, descriptions, strict=True)
            ]
            parts = ["\n".join(lines)]
        return parts + self._described_elsewhere(join_keys(group.path, name), page)

    def _used_in(self, group: SharedGroup, variants: Sequence[Variant], is_head: bool = False) -> str:
        """Return which of the variants of a group have a setting; empty if all have it.

        is_head: name the group, and leave out the tasks, which follow in the text.
        """
        rest = [each for each in group.variants if each not in variants]
        if not rest:
            return ""
        kinds = list(dict.fromkeys(str(each.kind) for each in variants if each.kind))
        if kinds and all(each.kind for each in variants) and not set(kinds) & {each.kind for each in rest}:
            return f"`{group.path}` of {_kinds(kinds)}" if is_head else _kinds(kinds)
        if tasks := self._tasks_alone(group, variants):
            return "" if is_head else tasks
        return ", or ".join(self._label(group, each) for each in variants)

    def _tasks_alone(self, group: SharedGroup, variants: Sequence[Variant]) -> str:
        """Return the tasks of some variants of a group; empty if they have a task in common with other variants."""
        places = [place for each in variants for place in each.at(group.path)]
        others = [place for each in group.variants if each not in variants for place in each.at(group.path)]
        return _condition(places, others) if not set(_runs(places)) & set(_runs(others)) else ""

    def _described_elsewhere(self, key: str, page: str) -> list[str]:
        """Return links to the groups that can stand at a key but are listed at another path."""
        links: dict[str, list[Variant]] = {}
        everything = []
        for group in self.groups:
            for variant in group.variants:
                everything += variant.at(key)
                if variant.at(key) and group.path != key:
                    links.setdefault(group.path, []).append(variant)
        texts = []
        for path, variants in links.items():
            own = [place for variant in variants for place in variant.at(key)]
            others = [place for place in everything if place not in own]
            if not others:
                label = "Settings"
            elif all(variant.kind for variant in variants):
                label = _listed([str(variant.kind) for variant in variants])
            else:
                label = _condition(own, others)
            texts.append(f"{label}: {self._link(path, page)}")
        return ["; ".join(texts) + "."] if texts else []

    def _link(self, path: str, page: str) -> str:
        target = page_of(path)
        return f"[`{path}`]({'' if target == page else f'{target}.md'}#{anchor_of(path)})"


def server_page() -> str:
    """Return the settings of `dragoman serve`, without the title and what precedes them."""
    return SettingsPages({"serve": sections(ServeConfig)}).on_one_page()


def _listed_pages() -> str:
    listed = [f"- [{title}]({name}.md)" for name, (title, _) in PAGES.items()]
    return "\n".join([*listed, "- [Server: settings of `dragoman serve`](server.md)"])


def _forms(variants: Iterable[Variant], name: str) -> dict[tuple[str, str], list[tuple[Variant, int]]]:
    """Return the types and descriptions of a setting, each with its variants and the index of the setting in them."""
    forms: dict[tuple[str, str], list[tuple[Variant, int]]] = {}
    for variant in variants:
        for index, row in enumerate(variant.settings):
            if row.key == name:
                forms.setdefault((row.type, row.description), []).append((variant, index))
    return forms


def _named_by_forms(group: SharedGroup, name: str) -> set[str]:
    """Return the tasks that the text of a setting names, form by form; none if the setting has only one form."""
    variants = group.with_setting(name)
    if len(_forms(variants, name)) < 2:
        return set()
    return {place.run for each in variants for place in each.at(group.path)}


def _escape(text: str) -> str:
    """Escape signs that Markdown would treat as HTML or emphasis, except in code."""
    return re.sub(r"(`[^`]*`)|(<(?=[\w/])|\*)", lambda match: match[1] or f"\\{match[2]}", text)


def _runs(places: Iterable[Occurrence]) -> list[str]:
    return list(dict.fromkeys(place.run for place in places))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _kinds(kinds: Sequence[str]) -> str:
    return f"kind{'s' if len(kinds) > 1 else ''} {_listed(kinds)}"


def _tasks(runs: Sequence[str], all_runs: Sequence[str]) -> str:
    """Name tasks, or those that are missing if they are fewer."""
    missing = [run for run in all_runs if run not in runs]
    if missing and len(missing) < len(runs):
        return f"all tasks but {_listed(missing)}"
    return f"task{'s' if len(runs) > 1 else ''} {_listed(runs)}"


def _condition(places: Sequence[Occurrence], others: Sequence[Occurrence]) -> str:
    """Return what distinguishes places from others: tasks, or the group around them."""
    runs, other_runs = _runs(places), _runs(others)
    if not set(runs) & set(other_runs):
        return _tasks(runs, [*runs, *other_runs])
    around = list(dict.fromkeys(place.within for place in places))
    if () not in around and not set(around) & {place.within for place in others}:
        kinds: dict[str, list[str]] = {}
        for path, kind in filter(None, around):
            kinds.setdefault(path, []).append(kind)
        return " or ".join(f"`{path}` of {_kinds(own)}" for path, own in kinds.items())
    own = [run for run in runs if run not in other_runs]
    return _tasks(own, own) if own else ""


def _defaults(uses: Sequence[tuple[Variant, int]], path: str) -> str:
    """Return the most frequent default of a setting as text, and the others with the places where they hold."""
    by_default: dict[str | None, list[Occurrence]] = {}
    for variant, index in uses:
        for place in variant.occurrences:
            by_default.setdefault(place.defaults[index], []).append(place)
    usual = next(place.defaults[index] for variant, index in uses for place in variant.at(path))
    others = [
        f"{_value(default)} with {_where(places, by_default[usual])}"
        for default, places in by_default.items()
        if default != usual
    ]
    if not others:
        return _value(usual)
    return f"{_value(usual)} ({'; '.join(others)})" if _value(usual) else "; ".join(others)


def _where(places: Sequence[Occurrence], others: Sequence[Occurrence]) -> str:
    return _condition(places, others) or _listed(list(dict.fromkeys(place.path for place in places)))


def _value(default: str | None) -> str:
    return {None: "must be given", "see below": ""}.get(default, f"default `{default}`")
