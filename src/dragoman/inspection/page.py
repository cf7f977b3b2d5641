"""The HTML page of an inspection, with its pictures."""

from collections.abc import Sequence
from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 sans-serif;color:#1f2933;margin:2rem auto;max-width:80rem;padding:0 1rem}"
    "img{max-width:100%;border:1px solid #e4e8ec}code{background:#f3f5f7;padding:0 .2em}"
)


def build_page(index: dict[str, Any]) -> str:
    """Return the HTML page for the contents of `index.json`."""
    parts = [f"<p><b>{name}</b> {escape(index[name])}</p>" for name in ("source", "target") if index[name] is not None]
    if "tree" in index:
        parts.append(f'<p><img src="{index["tree"]}" alt="the tree"></p>')
    for kind in index["kinds"]:
        items = "".join(map(_list_item, kind["attentions"]))
        png, svg = kind["overview"]
        rows, columns = _TOKEN_DESCRIPTIONS[kind["rows"]], _TOKEN_DESCRIPTIONS[kind["columns"]]
        parts.append(
            f"<h2>{kind['kind']}</h2>\n<p>Rows: {rows}. Columns: {columns}.</p>\n"
            f'<p><a href="{svg}"><img src="{png}" alt="all layers and heads of {kind["kind"]}"></a></p>\n'
            f"<ul>\n{items}</ul>"
        )
    parts += [_fills_section(number, fills) for number, fills in enumerate(index.get("fills", ()), 1)]
    if "relevance" in index:
        parts += [_relevance_section(index["relevance"]), _erasure_section(index["erasure"])]
    if "document" in index:
        png, svg = picture_files("document")
        parts.append(f'<p><a href="{svg}"><img src="{png}" alt="weights of the sentences and words"></a></p>')
    if index["absent"]:
        parts.append(
            f"<h2>Not available</h2>\n<ul>{''.join(f'<li>{escape(each)}</li>' for each in index['absent'])}</ul>"
        )
    parts.append(f'<p>All weights: <a href="{index["arrays"]}">{index["arrays"]}</a></p>')
    return page("Attention and relevance" if "relevance" in index else "Attention", parts)


def page(title: str, parts: Sequence[str]) -> str:
    """Return an HTML page. title: escaped text. parts: HTML elements."""
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n<h1>{title}</h1>\n{body}\n</html>\n"
    )


def _fills_section(number: int, fills: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['text'])}</code></td><td>{each['probability']:.4f}</td></tr>" for each in fills
    )
    return f"<h2>Tokens for mask {number}</h2>\n<table>\n<tr><th>token</th><th>probability</th></tr>{rows}\n</table>"


def _relevance_section(relevance: dict[str, Any]) -> str:
    png, svg = relevance["pictures"]
    return (
        f"<h2>Relevance of the words</h2>\n<p>Gradient × input of the {escape(relevance['output'])}, which is "
        f"{relevance['value']:.3f}. Blue words raise it, and orange words lower it. The words and the special symbols "
        f'sum to {relevance["sum"]:.3f}.</p>\n<p><a href="{svg}"><img src="{png}" alt="relevance of each word"></a></p>'
    )


def _erasure_section(erasure: dict[str, Any]) -> str:
    png, svg = erasure["pictures"]
    return (
        f"<h2>Erasure of the words</h2>\n<p>The {escape(erasure['output'])}, which is {erasure['value']:.3f}, minus "
        "its value for the text without the word.</p>\n"
        f'<p><a href="{svg}"><img src="{png}" alt="effect of each word"></a></p>'
    )


_TOKEN_DESCRIPTIONS = {
    "source": "source tokens",
    "target": "predicted target tokens",
    "read": "decoder input tokens",
}


def _list_item(attention: dict[str, Any]) -> str:
    png, svg = attention["pictures"]
    heads = "1 head" if attention["heads"] == 1 else f"{attention['heads']} heads"
    return f'<li><code>{attention["name"]}</code>, {heads}: <a href="{png}">PNG</a>, <a href="{svg}">SVG</a></li>\n'


def picture_files(base_name: str) -> tuple[str, str]:
    """Return the names of the PNG and of the SVG file of a picture."""
    return f"{base_name}.png", f"{base_name}.svg"
