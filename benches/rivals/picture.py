"""The picture of one-way times: a dot for each system, with its range, on a logarithmic axis.

It is an SVG that loads nothing, and follows the light or dark theme of its reader.
"""

import html
import math

import table

WIDTH, LEFT, RIGHT, ROW, TOP = 760, 255, 70, 22, 52
STYLE = """
text { font: 13px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; }
.part { font-weight: 600; }
.small { font-size: 11px; fill: #59636e; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.ours { fill: #0969da; stroke: #0969da; }
.other { fill: #818b98; stroke: #818b98; }
.range { stroke-width: 2; opacity: .45; }
text.ours { stroke: none; font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small { fill: #9198a1; }
  .grid { stroke: #3d444d; }
  .ours { fill: #4493f8; stroke: #4493f8; }
  .other { fill: #9198a1; stroke: #9198a1; }
}
"""


def drawn(lines, machine):
    """The picture, as text."""
    timed = [line for line in lines if "one_way_us" in line]
    low = 10 ** math.floor(math.log10(min(line["one_way_us"]["low"] for line in timed)))
    high = max(line["one_way_us"]["high"] for line in timed) * 1.2

    def across(value):
        share = math.log(value / low) / math.log(high / low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    shapes, y = [], TOP
    parts = sorted({line["part"] for line in timed}, reverse=True)
    for part in parts:
        shapes.append(f'<text class="part" x="12" y="{y + 15}">{html.escape(part)}</text>')
        y += ROW
        rows = [line for line in timed if line["part"] == part]
        for line in sorted(rows, key=lambda line: line["one_way_us"]["median"]):
            shapes += dot(line, y, across)
            y += ROW
        y += 8
    return framed(shapes, y, low, high, across, machine)


def dot(line, y, across):
    """The row of one system: its name, its range, its median and the figure."""
    kind = "ours" if line["doorbell"] else "other"
    name = f"Doorbell, {line['system']}" if line["doorbell"] else line["system"]
    value = line["one_way_us"]
    middle, x = y + 11, across(value["median"])
    end = max(across(value["high"]), x + 5)
    style = ' class="ours"' if line["doorbell"] else ""
    yield f'<text{style} x="{LEFT - 12}" y="{middle + 4}" text-anchor="end">{html.escape(name)}</text>'
    yield (f'<line class="{kind} range" x1="{across(value["low"]):.1f}" y1="{middle}" '
           f'x2="{across(value["high"]):.1f}" y2="{middle}"/>')
    yield f'<circle class="{kind}" cx="{x:.1f}" cy="{middle}" r="5"/>'
    yield f'<text x="{end + 8:.1f}" y="{middle + 4}">{table.figures(value["median"])}</text>'


def framed(shapes, y, low, high, across, machine):
    """The rows with their title, axis and grid."""
    grid = []
    power = low
    while power <= high:
        x = across(power)
        grid.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{y}"/>')
        grid.append(f'<text class="small" x="{x:.1f}" y="{y + 15}" text-anchor="middle">'
                    f'{power:g} µs</text>')
        power *= 10
    height = y + 46
    title = "One-way time of 16 bytes (RPC: half of a call with 64)"
    note = html.escape(f"Medians and ranges of all rounds. {machine}")
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{title}">', f"<style>{STYLE}</style>",
        f'<text class="title" x="12" y="26">{title}</text>', *grid, *shapes,
        f'<text class="small" x="12" y="{y + 36}">{note}</text>', "</svg>", ""])
