# SPDX-License-Identifier: BSD-3-Clause
"""Shows a run in a notebook: the report as a card; one click opens the page with charts."""

import html

from crema.program import CremaError

PAGE_BYTES = 4_000_000  # of the page; a notebook keeps it in its file
FRAME_STYLE = "width:100%;height:44rem;border:1px solid #8888;border-radius:4px;background:#fff"
TEXT_STYLE = "margin:0;padding:.8em 1em;max-height:40rem;overflow:auto;border:1px solid #8888;border-radius:4px;line-height:1.25"


def text(run):
    """The report; for a run from a file, only what is available without the program."""
    try:
        return run.report()
    except CremaError as error:
        return "\n".join([repr(run), "", *map(str, run.findings), "", f"({error})"])


def page(run):
    """The page in a separate frame: it shares no style, script or session with the notebook."""
    try:
        whole = run.html()
    except CremaError:
        return ""
    if len(whole) > PAGE_BYTES:
        return f"<p>The page with charts has {len(whole) / 1e6:.0f} MB: write it with <code>crema report --run {html.escape(run.id)} --html</code></p>"
    return (f'<details><summary>Charts and tables</summary><iframe title="crema report of run {html.escape(run.id)}" '
            f'sandbox="allow-scripts" loading="lazy" style="{FRAME_STYLE}" srcdoc="{html.escape(whole)}"></iframe></details>')


def card(run):
    return f'<div class="crema-run"><pre style="{TEXT_STYLE}">{html.escape(text(run).rstrip())}</pre>{page(run)}</div>'
