"""The table of all systems, in Markdown."""


def markdown(lines, machine):
    """A table of all parts, with the machine above it."""
    text = [f"{machine}.", "", "| | one way, 16 B | 8 B, messages a second | 64 KiB, GB/s |",
            "|---|---|---|---|"]
    part = None
    for line in sorted(lines, key=lambda line: (line["part"] != "Shared memory",)):
        if line["part"] != part:
            part = line["part"]
            text.append(f"| **{part}** | | | |")
        name = f"Doorbell, {line['system']}" if line["doorbell"] else line["system"]
        text.append(f"| {name} | {time(line)} | {rate(line)} | {bulk(line)} |")
    return "\n".join(text)


def time(line):
    """A time in microseconds, with three figures."""
    value = line.get("one_way_us")
    return f"{figures(value['median'])} µs" if value else ""


def rate(line):
    """Messages a second, in millions."""
    value = line.get("messages_per_s")
    return f"{figures(value['median'] / 1e6)} M" if value else ""


def bulk(line):
    """Gigabytes a second."""
    value = line.get("gbytes_per_s")
    return figures(value["median"]) if value else ""


def figures(value):
    """A number with two or three figures that count."""
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 10 else (
        f"{value:.2f}" if value >= 1 else f"{value:.2g}" if value < 0.1 else f"{value:.2f}")
