//! A report that is hard to draw: many lines, long names, negative parts, numbers far apart.

use doorbell_report::{
    Axis, Bar, Bars, Cell, Column, Dot, Dots, Figure, Lines, Panels, Report, Section, Series, Span,
    Spans, Table, Value,
};

const LONG: &str = "a series whose name is far too long for the margin of a figure on any screen";

pub fn report() -> Report {
    let wave = |phase: f64| {
        (0..40).map(move |step| {
            let x = f64::from(step) / 4.0;
            let y = (x + phase).sin();
            (x, Value::within(y, y - 0.2, y + 0.3))
        })
    };
    let many =
        (0..9).fold(Lines::new(Axis::linear("x", ""), Axis::linear("y", "m")), |lines, number| {
            lines.series(Series::new(format!("line {number}"), wave(f64::from(number) * 0.7)))
        });
    let single = Lines::new(Axis::log2("Burst", ""), Axis::log("Time", "s"))
        .series(Series::new("one", [(8.0, Value::within(3e-7, 1e-7, 9e-7))]))
        .series(Series::new("another", [(8.0, 4e-7)]).published("Somebody, 1999"))
        .level("a level with a long label", 2e-7);
    let long = Lines::new(Axis::linear("Year", ""), Axis::linear("Messages", "1/s"))
        .series(Series::new(LONG, [(1996.0, 1.2e6), (2001.0, 3.4e7)]))
        .series(Series::new("flat", [(1996.0, 2e6), (2001.0, 2e6)]));
    let huge = Lines::new(Axis::linear("Messages", ""), Axis::linear("Bytes", ""))
        .series(Series::new("huge", [(1e7, -1e12), (9.5e8, 3e12)]));
    let whiskers = Bars::stacked(Axis::linear("Time", "µs"), ["o_s", "L", "o_r"])
        .total("sum")
        .bar(Bar::new("mixed", [(0.3, 0.1), (-0.2, 0.05), (0.4, 0.2)].map(around)).group("near"))
        .bar(
            Bar::new("negative", [(-0.3, 0.1), (-0.2, 0.05), (-0.1, 0.2)].map(around))
                .group("near"),
        )
        .bar(Bar::new(LONG, [(0.3, 0.0), (0.0, 0.0), (0.0, 0.0)].map(around)).group("far"))
        .bar(Bar::new("partial", [Some(Value::exact(0.5)), None]));
    let upright = (0..5).fold(
        Bars::grouped(Axis::linear("Bandwidth", "GB/s"), ["read", "write"]).vertical(),
        |bars, number| {
            let value = 1.5 + f64::from(number);
            let group = if number < 2 { "udp" } else { "shm" };
            let bar =
                Bar::new(format!("{number}"), [(value, 0.4), (-0.2 * value, 0.1)].map(around));
            bars.bar(bar.group(group))
        },
    );
    let crowded = (0..14).fold(
        Bars::grouped(Axis::log("Time", "ns"), ["time"]).vertical(),
        |bars, number| {
            bars.bar(Bar::new(
                format!("a long name {number}"),
                [around((10_f64.powi(number), 0.0))],
            ))
        },
    );
    let dots = (0..9).fold(Dots::new("Time", "µs"), |dots, number| {
        let value = 10_f64.powi(number - 3);
        let dot = Dot::new(if number == 4 { LONG } else { "am" }, around((value, 0.9 * value)));
        dots.dot(dot.group(["", "near", LONG][number as usize / 3]).colour(number as usize))
    });
    let names = ["o_s", "L", "o_r", "RTT/2"];
    let times = [(0.1, 0.1, 1.0), (0.5, 0.9, 1.0), (2.0, 3.0, 1.0), (0.0, 0.0, 1e-6)];
    let spans = times.into_iter().enumerate().fold(
        Spans::new("Half a round trip", "µs", names),
        |spans, (colour, (first, last, whole))| {
            let label = if colour == 1 { LONG } else { "am" }.to_owned();
            let group = ["near", "far"][colour / 2].to_owned();
            let (first, last) = (first.into(), last.into());
            let whole = around((whole, 0.4 * whole));
            spans.span(Span { label, group, colour, first, last, whole })
        },
    );
    let panels = (0..5).fold(Panels::new(), |panels, number| {
        let heading = if number == 2 { LONG.to_owned() } else { format!("panel {number}") };
        let lines = Lines::new(Axis::log2("Burst", ""), Axis::log("Time", "µs"));
        let series = |name: &str| Series::new(name, [(2.0, 1e-3), (128.0, 1e5)]);
        panels.panel(heading, lines.series(series(LONG)).series(series("am")))
    });
    let table = (0..3).fold(
        (0..14).fold(
            Table::new("wide", "A table that is wider than most screens")
                .column(Column::text(LONG)),
            |table, number| table.column(Column::number(format!("Column {number}"), "µs")),
        ),
        |table, row| {
            let numbers = (0..14).map(|number| Cell::from(around((f64::from(number * row), 0.5))));
            table.row([Cell::from(LONG)].into_iter().chain(numbers))
        },
    );
    let levels = (0..32).map(|number| {
        let title = format!("Levels {number}");
        Figure::new(format!("levels-{number}"), title, levels(number))
    });
    let levels = levels.fold(Section::new("Levels"), Section::figure);
    let beside = (24..40).map(|number| {
        let panels = (0..3).fold(Panels::new(), |panels, place| {
            panels.panel(format!("Layer {place}"), self::levels(number + place))
        });
        let title = format!("Levels beside each other {number}");
        Figure::new(format!("beside-{number}"), title, panels)
    });
    let levels = beside.fold(levels, Section::figure);
    Report::new(format!("{LONG}: {}", "unbreakable".repeat(12)))
        .section(
            Section::new("All")
                .paragraph("x".repeat(300))
                .facts([(LONG, "y".repeat(200))])
                .table(table)
                .figure(Figure::new("dots", "Dots far apart", dots))
                .figure(Figure::new("spans", "Spans, with intervals", spans))
                .figure(Figure::new("panels", "Many small drawings", panels))
                .figure(Figure::new("many", "Many lines", many))
                .figure(Figure::new("single", "Single points", single))
                .figure(Figure::new("long", LONG, long))
                .figure(Figure::new("huge", "Huge numbers", huge))
                .figure(Figure::new("whiskers", "Stacked, with intervals", whiskers))
                .figure(Figure::new("upright", "Vertical, with negative values", upright))
                .figure(Figure::new("crowded", "Vertical, with too many names", crowded)),
        )
        .section(levels)
}

/// Curves and levels anywhere between the axes, by a number: a curve whose name is among the levels
/// since it ends before the others; levels near each other, at the ends of
/// the axis, or on a line; from 24 on, all levels in the lowest tenth, as on a busy machine.
fn levels(number: u32) -> Lines {
    let share = |place: u32| f64::from((number * 7 + place * 13 + number * place * 5) % 31) / 30.0;
    let level = |place: u32| if number < 24 { share(place) } else { share(place) / 10.0 };
    let curve = |from: f64, to: f64| {
        (0..8).map(move |power| {
            let part = 1.0 / 2_f64.powi(power);
            (2_f64.powi(power), to + (from - to) * part)
        })
    };
    Lines::new(Axis::log2("Requests in a burst", ""), Axis::linear("Time for a request", "µs"))
        .series(Series::new("Δ = 0", curve(share(0), share(1))))
        .series(Series::new("Δ = 2 g", curve(share(2), share(3))))
        .series(Series::new("ends early", curve(share(7), share(8)).take(7)))
        .level(format!("o_s {:.3}", level(4)), level(4))
        .level(format!("g {:.3}", level(5)), level(5))
        .level(format!("o_s + Δ + o_r {:.3}", level(6)), level(6))
}

fn around((value, reach): (f64, f64)) -> Value {
    Value::within(value, value - reach, value + reach)
}
