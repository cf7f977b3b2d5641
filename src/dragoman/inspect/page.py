"""A page for a browser that shows what a folder of pictures holds."""

from html import escape
from typing import Any

_STYLE = (
    "body{font:16px/1.5 sans-serif;color:#1f2933;margin:2rem auto;max-width:80rem;padding:0 1rem}"
    "img{max-width:100%;border:1px solid #e4e8ec}code{background:#f3f5f7;padding:0 .2em}"
)


def page(index: dict[str, Any]) -> str:
    """HTML, of an inspection's index."""
    parts = [f"<p><b>{name}</b> {escape(index[name])}</p>" for name in ("source", "target") if index[name] is not None]
    for kind in index["kinds"]:
        shown = "".join(map(_attention, kind["attentions"]))
        png, svg = kind["overview"]
        parts.append(
            f"<h2>{kind['kind']}</h2>\n<p>Rows: {_SIDES[kind['rows']]}. Columns: {_SIDES[kind['columns']]}.</p>\n"
            f'<p><a href="{svg}"><img src="{png}" alt="all layers and heads of {kind["kind"]}"></a></p>\n'
            f"<ul>\n{shown}</ul>"
        )
    if index["absent"]:
        parts.append(f"<h2>Not there</h2>\n<ul>{''.join(f'<li>{escape(each)}</li>' for each in index['absent'])}</ul>")
    parts.append(f'<p>All weights: <a href="{index["arrays"]}">{index["arrays"]}</a></p>')
    body = "\n".join(parts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Attention</title>\n'
        f"<style>{_STYLE}</style>\n<h1>Attention</h1>\n{body}\n</html>\n"
    )


_SIDES = {
    "source": "tokens of the source",
    "target": "tokens of the target, each while it is predicted",
    "read": "tokens that were read by then",
}


def _attention(each: dict[str, Any]) -> str:
    png, svg = each["pictures"]
    heads = "1 head" if each["heads"] == 1 else f"{each['heads']} heads"
    return f'<li><code>{each["name"]}</code>, {heads}: <a href="{png}">PNG</a>, <a href="{svg}">SVG</a></li>\n'
