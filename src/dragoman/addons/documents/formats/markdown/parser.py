"""`MarkdownParser`: a CommonMark parser with the blocks of dialects, which also records where inline markup ends."""

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.addons.documents.formats.markdown.dialects import MaskedText
from dragoman.base.packages import import_optional

_PARAGRAPH_ENDS = {"alt": ["paragraph", "reference", "blockquote", "list"]}


class MarkdownParser:
    """A markdown-it-py parser that also records the ends of links, images and code spans within a block.

    markdown-it-py returns source positions only for blocks, so its inline rules are wrapped to record their matches.
    incomplete_tables: the first lines of the tables that were skipped, because they lack too many cells.
    """

    def __init__(self) -> None:
        package = import_optional("markdown_it", "documents", "markdown-it-py")
        rules = import_optional("markdown_it.rules_inline", "documents", "markdown-it-py")
        footnotes = import_optional("mdit_py_plugins.footnote.index", "documents", "mdit-py-plugins")
        definitions = import_optional("mdit_py_plugins.deflist", "documents", "mdit-py-plugins")
        self._parser: Any = package.MarkdownIt("commonmark").enable(["table", "strikethrough"])
        self._parser.use(definitions.deflist_plugin)
        blocks = self._parser.block.ruler
        self._parse_table = import_optional("markdown_it.rules_block", "documents", "markdown-it-py").table
        blocks.at("table", self._parse_small_table, {"alt": ["paragraph", "reference"]})
        blocks.before("reference", "footnote_def", footnotes.footnote_def, {"alt": ["paragraph", "reference"]})
        blocks.before("list", "container", self._parse_container, _PARAGRAPH_ENDS)
        self._parser.core.ruler.disable(["inline", "text_join"])
        self._parser.inline.ruler.after("image", "footnote_inline", self._record_ends(_parse_inline_footnote))
        self.incomplete_tables: list[int] = []
        self._ends: dict[int, int] = {}
        self._content = self._container = ""
        recorded_rules = {
            "link": rules.link,
            "image": rules.image,
            "backticks": rules.backtick,
            "autolink": rules.autolink,
        }
        for name, rule in recorded_rules.items():
            self._parser.inline.ruler.at(name, self._record_ends(rule))

    def blocks(self, masked: MaskedText, begin: int = 0) -> tuple[list[Any], Any]:
        """Return the block tokens with unparsed inline content, and the link definitions. begin: where to start."""
        environment: dict[str, Any] = {}
        self._container = masked.container
        return self._parser.parse(masked.text[begin:].replace("\0", "\ufffd"), environment), environment

    def tokens(self, content: str, environment: Any) -> tuple[list[Any], Mapping[int, int]]:
        """Return the inline tokens of a block, and the end of each link, image and code span by its start."""
        self._content, self._ends = content, {}
        result: list[Any] = []
        self._parser.inline.parse(content, self._parser, environment, result)
        return result, self._ends

    def _record_ends(self, rule: Callable[[Any, bool], bool]) -> Callable[[Any, bool], bool]:
        def record_end(state: Any, silent: bool) -> bool:
            begin = state.pos
            matched = bool(rule(state, silent))
            if matched and not silent and state.src == self._content:
                self._ends[begin] = state.pos
            return matched

        return record_end

    def _parse_small_table(self, state: Any, first: int, last: int, silent: bool) -> bool:
        """Parse a table, unless it lacks too many cells.

        markdown-it-py adds cells to rows that are shorter than the first row: 1,800 characters became 65,536 cells,
        which take 0.6 s and 65 MB.
        """
        is_table = bool(self._parse_table(state, first, last, True))
        if silent or not is_table:
            return is_table
        end = first
        while end < last and not state.isEmpty(end) and state.sCount[end] >= state.blkIndent:
            end += 1
        cells = [state.src.count("|", state.bMarks[line], state.eMarks[line]) for line in range(first, end)]
        missing = sum(max(0, cells[0] - each) for each in cells[2:])
        if missing <= state.eMarks[end - 1] - state.bMarks[first]:
            return bool(self._parse_table(state, first, last, False))
        self.incomplete_tables.append(first)
        state.line = end
        return True

    def _parse_container(self, state: Any, first: int, last: int, silent: bool) -> bool:
        """Parse an admonition or a tab of MkDocs, whose content is indented by at least four columns."""
        start = state.bMarks[first] + state.tShift[first]
        if not state.src.startswith(self._container, start) or state.sCount[first] - state.blkIndent >= 4:
            return False
        if silent:
            return True
        indent = state.blkIndent + 4
        end = first + 1
        while end < last and (state.isEmpty(end) or state.sCount[end] >= indent):
            end += 1
        for type, nesting in (("paragraph_open", 1), ("inline", 0), ("paragraph_close", -1)):
            token = state.push(type, "", nesting)
            token.map = [first, first + 1]
            if not nesting:
                token.content = state.src[start : state.eMarks[first]].rstrip(" \t")
        parent, line_max, block_indent = state.parentType, state.lineMax, state.blkIndent
        state.parentType, state.lineMax, state.blkIndent = "container", end, indent
        state.md.block.tokenize(state, first + 1, end)
        state.parentType, state.lineMax, state.blkIndent = parent, line_max, block_indent
        state.line = end
        return True


def _parse_inline_footnote(state: Any, silent: bool) -> bool:
    """Parse `^[text]` as one token, whose content is the text."""
    helpers = import_optional("markdown_it.helpers", "documents", "markdown-it-py")
    start = state.pos
    if not state.src.startswith("^[", start):
        return False
    end = helpers.parseLinkLabel(state, start + 1)
    if end < 0:
        return False
    if not silent:
        token = state.push("footnote_inline", "", 0)
        token.content = state.src[start + 2 : end]
    state.pos = end + 1
    return True
