"""Code as HTML, highlighted, and the style sheets for light and dark."""

from __future__ import annotations

from functools import cache, lru_cache
from html import escape
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

MAX_BYTES = 300_000  # beyond this, text as it is: highlighting takes longer than reading


@lru_cache(maxsize=16)
def c_html(code: str) -> Markup:
    """C in a <pre>, every word of it escaped."""
    if len(code) > MAX_BYTES:
        inner = escape(code)
    else:
        inner = highlight(code, get_lexer_by_name("c"), HtmlFormatter(nowrap=True))
    return Markup(f'<pre class="code" tabindex="0" aria-labelledby="code"><code>{inner}</code></pre>')


@cache
def style_sheet() -> str:
    """Colours of highlighted code: light, and dark where the reader prefers it."""
    light, dark = _rules("default"), _rules("github-dark")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _rules(style: str) -> str:
    """The rules of a style, without its background: the page has its own."""
    formatter: Any = HtmlFormatter(style=style, cssclass="code")  # whose stubs lack types
    return "\n".join(r for r in str(formatter.get_style_defs(".code")).splitlines() if r.startswith(".code ."))
