//! A report as those of measurements of LogP are, with invented numbers.

use doorbell_report::{
    Axis, Bar, Bars, Cell, Column, Dot, Dots, Figure, Lines, Note, Panels, Report, Section, Series,
    Span, Spans, Table, Value,
};

const PAPER: &str = "A. Begel, P. Buonadonna, D. E. Culler, D. Gay, \"An Analysis of VI \
                     Architecture Primitives in Support of Parallel and Distributed \
                     Communication\" (2001)";
const DEVICES: [&str; 4] = ["shm", "udp", "packet", "packet-v2"];

/// The report.
pub fn report() -> Report {
    Report::new("What a message costs on this machine")
        .subtitle("doorbell logp, 12 March 2025, 14:03, two processes on one machine")
        .head(
            "A message between two processes takes 0.21 µs through shared memory and 1.7 µs through \
             UDP; Active Messages add 0.09 µs.",
            Some(one_way()),
        )
        .json(r#"{"note":"</script><script>throw 1</script>","o_s_us":[0.031,0.064]}"#)
        .section(summary())
        .section(parameters())
        .section(curves())
        .section(breakdown())
        .section(machine())
}

fn summary() -> Section {
    Section::new("In short")
        .paragraph(
            "A short message of Active Messages keeps its sender's processor busy for 64 ns over \
             shared memory, and arrives 230 ns after it was sent. Over UDP the operating system's \
             part is all that counts.",
        )
        .note(Note::holds(
            "o_s of Active Messages is at most twice that of verbs, on every device.",
        ))
        .note(Note::does_not_hold(
            "Half a round trip of one-sided reads is shorter than that of messages: over udp it is \
             12 % longer.",
        ))
        .note(Note::warning("The processor's frequency changed during 3 of 21 rounds."))
        .note(Note::missing("packet-v2 was not measured: the kernel has no XDP. <b>&amp;</b>"))
}

fn parameters() -> Section {
    let mut table = Table::new("parameters", "The parameters of LogP, by layer and device")
        .column(Column::text("Layer, device"))
        .column(Column::number("o_s", "µs"))
        .column(Column::number("o_r", "µs"))
        .column(Column::number("L", "µs"))
        .column(Column::number("g", "µs"))
        .column(Column::number("RTT/2", "µs"))
        .column(Column::number("G", "ns/B").decimals(4));
    for (layer, device, [o_s, o_r, l]) in by_device() {
        let value =
            |value: f64, reach: f64| Value::within(value, value - 0.6 * reach, value + reach);
        if table.groups.last().is_none_or(|group| group.heading != device) {
            table = table.group(device, format!(" over {device}"));
        }
        table = table.row([
            Cell::from(layer),
            value(o_s, 0.004).into(),
            value(o_r, 0.011).into(),
            value(l, 0.02).into(),
            value(o_s + o_r, 0.013).into(),
            value(o_s + o_r + l, 0.03).into(),
            if layer == "splitc mapped" {
                Cell::Empty
            } else {
                value(0.08 + 0.1 * o_s, 0.002).into()
            },
        ]);
    }
    table = table.group("Published", "");
    for (name, values) in published() {
        let cells = values.map(|value| Cell::published(value, PAPER));
        table = table.row([Cell::from(name)].into_iter().chain(cells));
    }
    let names = ["o_s", "L", "o_r", "RTT/2"];
    let parts = by_device().into_iter().fold(
        Spans::new("Half a round trip", "µs", names),
        |spans, (label, group, [o_s, o_r, l])| {
            let (first, last, whole) = (o_s.into(), o_r.into(), around(o_s + o_r + l, 0.03));
            let (label, group) = (label.to_owned(), group.to_owned());
            spans.span(Span { colour: colour(&label), label, group, first, last, whole })
        },
    );
    let overheads = rows().into_iter().fold(
        Bars::grouped(Axis::log("Time", "µs"), ["o_s", "o_r", "g"]),
        |bars, (layer, device, [o_s, o_r, _])| {
            let value = |value: f64| Value::within(value, 0.93 * value, 1.12 * value);
            bars.bar(Bar::new(format!("{layer}, {device}"), [o_s, o_r, o_s + o_r].map(value)))
        },
    );
    let overheads = published().into_iter().fold(overheads, |bars, (name, [o_s, o_r, _, g, _])| {
        bars.bar(Bar::new(name, [o_s, o_r, g].map(Value::exact)).published(PAPER))
    });
    Section::new("Parameters")
        .table(table)
        .figure(Figure::new("parts", "Over packet, o_s and o_r overlap", parts).sentence(
            "L is what remains of half a round trip without o_s and o_r. Where the two overlap, \
                 the sender's processor still works when the receiver handles the message.",
        ))
        .figure(
            Figure::new("overheads", "Overheads and gap", overheads)
                .sentence("Messages cost a hundredth of what they cost in 2001."),
        )
}

/// The one-way times of all layers and devices, and those that were published.
fn one_way() -> Figure {
    let dots = by_device().into_iter().fold(
        Dots::new("Half a round trip", "µs"),
        |dots, (layer, device, [o_s, o_r, l])| {
            let dot = Dot::new(layer, around(o_s + o_r + l, 0.06)).group(device);
            dots.dot(dot.colour(colour(layer)))
        },
    );
    let dots = published().into_iter().fold(dots, |dots, (name, [.., half])| {
        let dot = Dot::new(name, Value::exact(half)).group("Published");
        dots.dot(dot.published(PAPER))
    });
    Figure::new(
        "one-way",
        "One way takes 0.061 µs (mapped over shm) to 2.0 µs (one-sided over udp)",
        dots,
    )
}

fn around(value: f64, share: f64) -> Value {
    Value::within(value, value * (1.0 - share), value * (1.0 + 1.5 * share))
}

/// The number of a layer's colour.
fn colour(layer: &str) -> usize {
    let layers = ["verbs", "am", "splitc mapped", "splitc one-sided", "splitc messages"];
    layers.iter().position(|name| *name == layer).unwrap_or_default()
}

/// The rows, device by device.
fn by_device() -> Vec<(&'static str, &'static str, [f64; 3])> {
    let mut rows = rows();
    rows.sort_by_key(|(_, device, _)| DEVICES.iter().position(|name| name == device));
    rows
}

fn rows() -> Vec<(&'static str, &'static str, [f64; 3])> {
    let layers = ["verbs", "am", "splitc messages", "splitc one-sided"];
    let mut rows = vec![("splitc mapped", "shm", [0.031, 0.05, -0.02])];
    for (layer, name) in layers.into_iter().enumerate() {
        for (number, device) in DEVICES.into_iter().enumerate() {
            let (layer, number) = (layer as f64, number as f64);
            let o_s = 0.034 + 0.03 * layer + 0.11 * number;
            let o_r = 0.06 + 0.045 * layer + 0.12 * number;
            let l = [0.12, 1.4, -0.28, -0.11][number as usize] + 0.02 * layer;
            rows.push((name, device, [o_s, o_r, l]));
        }
    }
    rows.rotate_left(1);
    rows
}

fn published() -> [(&'static str, [f64; 5]); 3] {
    [
        ("AMVIAv1 (LANai 4)", [2.7, 5.3, 45.0, 48.0, 53.0]),
        ("AMVIAv1 (LANai 7)", [3.2, 2.8, 33.2, 34.7, 39.2]),
        ("AMVIAv3 (LANai 7)", [3.1, 2.9, 29.6, 30.0, 35.6]),
    ]
}

fn curves() -> Section {
    let sizes = || (2..=20).map(|power| 2_f64.powi(power));
    let bandwidth = |setup: f64, rate: f64| {
        sizes().map(move |size| {
            let value = size / (setup + size / rate);
            let reach = 0.04 + 0.05 * (size.log2() * 1.7).sin().abs();
            (size, Value::within(value, value * (1.0 - reach), value * (1.0 + reach)))
        })
    };
    let published = sizes().take(11).map(|size| (size, size / (9000.0 + size / 0.064)));
    let lines = Lines::new(Axis::bytes("Message size"), Axis::log("Bandwidth", "GB/s"))
        .series(Series::new("verbs", bandwidth(90.0, 13.1)))
        .series(Series::new("Active Messages", bandwidth(190.0, 12.2)))
        .series(Series::new("Split-C", bandwidth(320.0, 11.9)))
        .series(Series::new("AMVIA, 2001", published).published(PAPER));

    let bursts = || (0..=7).map(|power| 2_f64.powi(power));
    let steady = |o_s: f64, g: f64| {
        bursts().map(move |burst| {
            let value = o_s + (g - o_s) * (1.0 - 8.0 / burst).max(0.0);
            (burst, Value::within(value, value - 0.006, value + 0.012))
        })
    };
    let axes = || (Axis::log2("Burst", "messages"), Axis::linear("Time per message", "µs"));
    let panel = |colour: usize, o_s: f64, g: f64| {
        let long = steady(o_s + 2.0 * g, o_s + 2.5 * g);
        Lines::new(axes().0, axes().1)
            .series(Series::new("Δ = 0", steady(o_s, g)).colour(colour).pattern(0))
            .series(Series::new("Δ = 2 g", long).colour(colour).pattern(1))
            .level("o_s", o_s)
            .level("g", g)
    };
    let signature = Panels::new()
        .panel("verbs", panel(0, 0.034, 0.12))
        .panel("Active Messages", panel(1, 0.064, 0.21))
        .panel("Split-C", panel(4, 0.091, 0.26));
    let bulk = DEVICES.into_iter().enumerate().fold(Panels::new(), |panels, (number, device)| {
        let lines = Lines::new(Axis::bytes("Message size"), Axis::log("Bandwidth", "GB/s"));
        let slower = 1.0 + 2.0 * number as f64;
        panels.panel(
            device,
            lines
                .series(Series::new("verbs", bandwidth(90.0 * slower, 13.1 / slower)).colour(0))
                .series(Series::new("am", bandwidth(190.0 * slower, 12.2 / slower)).colour(1)),
        )
    });
    Section::new("Curves")
        .figure(
            Figure::new("bandwidth", "Bandwidth by message size", lines).sentence(
                "From 64 KiB on, messages move as fast as memory is copied, at every layer.",
            ),
        )
        .figure(Figure::new("signature", "Long bursts take g", signature).sentence(
            "Short bursts cost o_s per message; long ones g, or o_s + Δ + o_r if the processor \
             computes for Δ between messages.",
        ))
        .figure(Figure::new("bulk", "Bulk moves at up to 13 GB/s over shm", bulk))
}

fn breakdown() -> Section {
    let names = ["base", "notification", "flow control", "semantics"];
    let values = [[32.5, 44.2, 14.4, 8.9], [28.1, 36.4, 9.1, 26.4], [36.1, 46.9, 11.6, 5.4]];
    let bars = Bars::stacked(Axis::linear("Host time", "%"), names).vertical();
    let bars = ["AM, 2001", "am, shm", "Split-C, 2001"].into_iter().zip(values).fold(
        bars,
        |bars, (label, values)| {
            let bar = Bar::new(label, values.map(Value::exact));
            bars.bar(if label.contains("2001") { bar.published(PAPER) } else { bar })
        },
    );
    let empty = Lines::new(Axis::bytes("Size"), Axis::log("Time", "µs"))
        .series(Series::new("nothing", [(64.0, 0.0), (128.0, -1.0), (256.0, f64::NAN)]));
    Section::new("Where the time goes")
        .figure(Figure::new("breakdown", "Host time of a request and its reply", bars))
        .figure(Figure::new("empty", "A figure without data", empty))
}

fn machine() -> Section {
    Section::new("Machine").facts([
        ("Processor", "AMD EPYC 9R14, 2 cores, 3.7 GHz"),
        ("Kernel", "Linux 6.1.0-28-cloud-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.119-1"),
        ("Memory", "7.6 GiB"),
        ("Command", "doorbell logp --report out.html --device shm --device udp --device packet"),
    ])
}
