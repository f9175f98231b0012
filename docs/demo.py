#!/usr/bin/env python3
"""Writes docs/demo.svg: what `codex demo` shows in a terminal.

usage: docs/demo.py PATH_TO_CODEX

The program runs in tmux, so the picture is what a terminal really shows; its colours are turned into spans of SVG.
"""
import html
import os
import re
import subprocess
import sys
import tempfile
import time

COLUMNS, ROWS = 84, 42
CHAR, LINE, MARGIN, BAR = 8.4, 19, 20, 30
TEXT, BACKGROUND = "#d8dee9", "#1f242d"
PALETTE = ["#3b4252", "#e07a83", "#a3be8c", "#ebcb8b", "#81a1c1", "#c49ac0", "#88c0d0", "#e5e9f0"]
BRIGHT = ["#7b8494", "#f08c95", "#b5d09c", "#f5d998", "#92b3d6", "#d5abd1", "#98d3e3", "#ffffff"]
DEADLINE = 60


def capture(program):
    """The rows of the terminal after the demo, with escape sequences."""
    with tempfile.TemporaryDirectory() as home:
        tmux = ["tmux", "-L", f"codex-demo-{os.getpid()}", "-f", "/dev/null"]
        command = f"CODEX_HOME={home} {os.path.abspath(program)} demo; echo __over__; sleep {DEADLINE}"
        subprocess.run(tmux + ["new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), command], check=True)
        try:
            until = time.monotonic() + DEADLINE
            while time.monotonic() < until:
                rows = subprocess.run(tmux + ["capture-pane", "-e", "-p"], capture_output=True, text=True).stdout
                if "__over__" in rows:
                    return rows.split("__over__")[0].rstrip().split("\n")
                time.sleep(0.1)
        finally:
            subprocess.run(tmux + ["kill-server"], check=False)
    sys.exit("the demo did not end in time")


def restyle(style, codes):
    """The style after a sequence of SGR codes: colour, bold, dim."""
    colour, bold, dim = style
    codes = [int(code or 0) for code in codes.split(";")]
    while codes:
        code = codes.pop(0)
        if code == 0:
            colour, bold, dim = TEXT, False, False
        elif code == 1:
            bold = True
        elif code == 2:
            dim = True
        elif code == 22:
            bold, dim = False, False
        elif 30 <= code <= 37:
            colour = PALETTE[code - 30]
        elif 90 <= code <= 97:
            colour = BRIGHT[code - 90]
        elif code == 39:
            colour = TEXT
        elif code == 38 and codes[:1] == [5]:
            number = codes[1]
            del codes[:2]
            colour = (PALETTE + BRIGHT)[number] if number < 16 else TEXT
    return colour, bold, dim


def spans(row, style):
    """The row as SVG, and the style that the next one begins with."""
    out = []
    for part in re.split(r"(\x1b\[[0-9;]*m)", row):
        if part.startswith("\x1b["):
            style = restyle(style, part[2:-1])
        elif part:
            colour, bold, dim = style
            attributes = f' fill="{colour}"' if colour != TEXT else ""
            attributes += ' font-weight="bold"' if bold else ""
            attributes += ' opacity=".6"' if dim else ""
            out.append(f"<tspan{attributes}>{html.escape(part)}</tspan>")
    return "".join(out), style


def picture(rows):
    width, height = round(COLUMNS * CHAR + 2 * MARGIN), BAR + len(rows) * LINE + 2 * MARGIN
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
           f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>']
    for place, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        out.append(f'<circle cx="{MARGIN + place * 20}" cy="{BAR / 2 + 4}" r="6" fill="{colour}"/>')
    out.append(f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="{TEXT}" xml:space="preserve">')
    style = (TEXT, False, False)
    for number, row in enumerate(rows):
        line, style = spans(row.rstrip(), style)
        if line:
            out.append(f'<text x="{MARGIN}" y="{BAR + MARGIN + number * LINE + 10}">{line}</text>')
    return "\n".join(out + ["</g>", "</svg>", ""])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    # The folder of the project is another one every time.
    rows = [re.sub(r"/\S*codex-demo-\w+/project", "/tmp/project", row) for row in capture(sys.argv[1])]
    target = os.path.join(os.path.dirname(os.path.abspath(__file__)), "demo.svg")
    with open(target, "w", encoding="utf-8") as file:
        file.write(picture(rows))
    print(f"wrote {target}: {len(rows)} rows")


if __name__ == "__main__":
    main()
