"""Makes docs/img/*.png from real runs: `make pictures`. Has the same requirements as the tests (Chromium, .venv, data/).

Check each picture before you commit it: a run depends on the machine's other load.
"""

import html
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import cluster
import make_data
from PIL import Image

sys.path.insert(0, str(cluster.ROOT / "tests" / "integration"))
import findings_server
from browser import Browser

OUT = cluster.ROOT / "docs" / "img"
MOST_BYTES = 150_000
SHOWN_LINES = 36
TERMINAL = "body{margin:0;background:#1d2025}pre{margin:0;padding:14px 18px;color:#e4e6ea;font:14px/1.32 'DejaVu Sans Mono',monospace;display:inline-block}"


def small(path):
    """Reduces a picture to 256 colours, as it hardly has more; a file that is too large is an error."""
    Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.relative_to(cluster.ROOT)}: {size / 1e3:.0f} kB")
    if size > MOST_BYTES:
        sys.exit(f"{path} is larger than {MOST_BYTES} bytes")


class Runs:
    """Runs, each in a separate state directory, without a collector."""

    def __init__(self, folder):
        self.folder = folder

    def env(self, name):
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CREMA")}
        return {**clean, "XDG_STATE_HOME": str(self.folder / name), "XDG_CONFIG_HOME": str(self.folder / "config")}

    def crema(self, name, *arguments):
        done = subprocess.run([str(a) for a in (cluster.BUILD / "crema", *arguments)], env=self.env(name), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        return done.stdout

    def run(self, name, *command):
        self.crema(name, "run", "--", sys.executable, *command)
        time.sleep(2)  # the agents' last records

    def page(self, name):
        path = self.folder / f"{name}.html"
        self.crema(name, "report", "--html", path)
        return path.as_uri()


def section_picture(tab, title, path):
    """Saves the panel with that heading."""
    box = tab.run(f"""(() => {{
        const head = [...document.querySelectorAll("h2")].find((e) => e.textContent.startsWith({title!r}));
        const b = head.closest("section").getBoundingClientRect();
        return {{x: b.x, y: b.y + scrollY, width: b.width, height: b.height}};
    }})()""")
    tab.clip(path, box)
    small(path)


def terminal_picture(tab, folder, command, text, path):
    file = folder / "terminal.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><style>{TERMINAL}</style><pre><b>$ {html.escape(command)}</b>\n{html.escape(text.rstrip())}</pre>")
    tab.look(1000, 600)
    tab.open(file.as_uri())
    tab.clip(path, tab.run("(() => { const b = document.querySelector('pre').getBoundingClientRect(); return {x: 0, y: 0, width: b.width, height: b.height}; })()"))
    small(path)


def main():
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="crema-") as scratch:
        folder = Path(scratch)
        files = {codec: shutil.copy(path, folder) for codec, path in make_data.files(cluster.ROOT / "data").items() if codec in ("zstd", "lz4", "lzma")}
        server = findings_server.start([files["zstd"]], pause=0.1)
        runs = Runs(folder)
        for name, read in {"straggler": [files["zstd"], files["lz4"]], "gil": [files["zstd"]], "baskets": [files["zstd"], files["lz4"]], "lzma": [files["lzma"]],
                           "server": [f"http://127.0.0.1:{server.server_port}/{Path(files['zstd']).name}"]}.items():
            runs.run(name, cluster.ROOT / "scripts" / "picture_jobs.py", name, *read)
        with Browser(folder / "profile") as tab:
            tab.look(1200, 800)
            tab.open(runs.page("straggler"))
            tab.picture(OUT / "page.png", whole=False)
            small(OUT / "page.png")
            section_picture(tab, "Task stream", OUT / "straggler.png")
            section_picture(tab, "CPU, waits, bytes and memory by line", OUT / "lines.png")
            tab.open(runs.page("gil"))
            section_picture(tab, "Where the time went", OUT / "gil.png")
            for name, panel in {"baskets": "Files by bytes", "lzma": "Codecs", "server": "Where the time went"}.items():
                tab.open(runs.page(name))
                section_picture(tab, panel, OUT / f"{name}.png")
            lines = runs.crema("straggler", "report").splitlines()
            command = "crema report" + (f" | head -{SHOWN_LINES}" if len(lines) > SHOWN_LINES else "")
            terminal_picture(tab, folder, command, "\n".join(lines[:SHOWN_LINES]), OUT / "report.png")


if __name__ == "__main__":
    main()
