//! What is drawn in figures, and what is said where something cannot be drawn.

use doorbell_report::{Axis, Bar, Bars, Figure, Lines, Report, Section, Series, Value};

/// The shapes of a class in a drawing, each as left, top, right and bottom.
fn rectangles(svg: &str, class: &str) -> Vec<[f64; 4]> {
    let mark = format!("\" class=\"{class}\"");
    let paths = svg.split("<path d=\"").filter_map(|rest| Some(rest.split_once(&mark)?.0));
    let paths = paths.filter(|path| !path.contains('"'));
    let numbers = |path: &str| -> [f64; 4] {
        let numbers = path.split(['M', ' ', 'H', 'V', 'Z']).filter(|piece| !piece.is_empty());
        let numbers: Vec<f64> = numbers.take(4).map(|n| n.parse().expect("a number")).collect();
        numbers.try_into().expect("a rectangle has four coordinates")
    };
    paths.map(numbers).collect()
}

fn figure(plot: impl Into<doorbell_report::Plot>) -> Figure {
    Figure::new("figure", "A figure", plot)
}

fn page(figure: Figure) -> String {
    Report::new("Page").section(Section::new("Section").figure(figure)).to_html()
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= 0.2
}

#[test]
fn a_negative_part_is_stacked_on_the_other_side_of_zero_and_the_sum_is_marked_where_it_is() {
    let bars = Bars::stacked(Axis::linear("Time", "µs"), ["o_s", "L", "o_r"])
        .total("half a round trip")
        .bar(Bar::new("packet", [0.4, -0.2, 0.6].map(Value::exact)));
    let svg = figure(bars).to_svg();
    // The first shape of each class is the sample in the legend.
    let [o_s, l, o_r] = ["b0", "b1", "b2"].map(|part| rectangles(&svg, &format!("bar {part}"))[1]);
    let zero = o_s[0];
    assert!(near(l[2], zero) && l[0] < zero, "L ends at zero, from the left: {l:?}, {o_s:?}");
    assert!(near(o_r[0], o_s[2]), "o_r follows o_s: {o_r:?}, {o_s:?}");
    let unit = (o_s[2] - zero) / 0.4;
    assert!(near(l[0], zero - 0.2 * unit) && near(o_r[2], zero + unit), "lengths are to scale");
    let sum = zero + 0.8 * unit;
    let marks = svg.split("<line x1=\"").filter(|rest| rest.contains("class=\"total\""));
    let places = marks.filter_map(|mark| mark.split('"').next()?.parse::<f64>().ok());
    assert!(places.into_iter().any(|place| near(place, sum)), "a mark is at 0.8: {svg}");
    assert!(svg.contains(">0.800<"), "the sum is written");
}

#[test]
fn parts_stacked_on_a_logarithmic_axis_are_drawn_on_a_linear_one() {
    let bars = |axis| {
        let bars = Bars::stacked(axis, ["a", "b"]);
        figure(bars.bar(Bar::new("bar", [1.0, 100.0].map(Value::exact)))).to_svg()
    };
    assert_eq!(bars(Axis::log("Time", "µs")), bars(Axis::linear("Time", "µs")));
}

#[test]
fn a_bar_with_a_part_missing_has_no_sum() {
    let bars = Bars::stacked(Axis::linear("Time", "µs"), ["a", "b"])
        .total("sum")
        .bar(Bar::new("partial", [Some(Value::exact(0.5)), None]));
    let svg = figure(bars).to_svg();
    assert_eq!(svg.matches("class=\"total\"").count(), 1, "in the legend alone: {svg}");
}

#[test]
fn a_figure_without_numbers_says_so() {
    let x = || Axis::bytes("Size");
    let y = || Axis::linear("Time", "µs");
    let plots: [Figure; 5] = [
        figure(Lines::new(x(), y())),
        figure(Lines::new(x(), y()).series(Series::new::<f64>("none", []))),
        figure(Lines::new(x(), y()).series(Series::new("lost", [(64.0, f64::NAN)]))),
        figure(Bars::grouped(y(), ["a"])),
        figure(Bars::stacked(y(), ["a"]).bar(Bar::new("none", [None::<Value>]))),
    ];
    for figure in plots {
        assert!(figure.to_svg().contains(">no data</text>"), "{figure:?}");
    }
}

#[test]
fn a_figure_says_how_many_values_have_no_place() {
    let lines = Lines::new(Axis::bytes("Size"), Axis::log("Time", "µs")).series(Series::new(
        "some",
        [(0.0, 1.0), (64.0, 0.0), (128.0, -1.0), (256.0, f64::INFINITY), (512.0, 2.0)],
    ));
    let html = page(figure(lines));
    assert!(html.contains("3 values are left out that are zero or negative"), "{html}");
    assert!(html.contains("1 value is left out that is not a finite number"), "{html}");
    let bars = Bars::grouped(Axis::log("Time", "µs"), ["a"]);
    let html = page(figure(bars.bar(Bar::new("bar", [Value::exact(-0.5)]))));
    assert!(html.contains("1 value is left out that is zero or negative"), "{html}");
}

#[test]
fn a_figure_that_shows_all_values_says_nothing_of_that() {
    let lines = Lines::new(Axis::linear("x", ""), Axis::linear("y", ""))
        .series(Series::new("all", [(-1.0, 0.0), (0.0, -2.0)]));
    assert!(!page(figure(lines)).contains("left out"));
}

#[test]
fn a_published_line_is_cited_once_with_the_names_of_all_lines_of_that_source() {
    let series = |name: &str| Series::new(name, [(1.0, 2.0), (2.0, 3.0)]).published("Table 2");
    let lines = Lines::new(Axis::linear("x", ""), Axis::linear("y", ""));
    let html = page(figure(lines.series(series("then")).series(series("before"))));
    assert!(html.contains(">then, before: Table 2</p>"), "{html}");
}

#[test]
fn numbers_of_any_magnitude_are_drawn() {
    let numbers = [f64::MIN_POSITIVE, 1e-99, 1e-3, 0.0, 1e99, f64::MAX, -f64::MAX, f64::NAN];
    for x in [Axis::linear("x", ""), Axis::log("x", ""), Axis::bytes("x")] {
        for one in numbers {
            for other in numbers {
                let value = Value::within(one, other.min(one), other.max(one));
                let lines = Lines::new(x.clone(), x.clone())
                    .series(Series::new("line", [(one, value), (other, value)]))
                    .level("level", other);
                let bars = Bars::grouped(x.clone(), ["a", "b"])
                    .bar(Bar::new("bar", [value, Value::exact(other)]));
                let stacked =
                    Bars { arrangement: doorbell_report::Arrangement::Stacked, ..bars.clone() };
                for svg in [
                    figure(lines).to_svg(),
                    figure(bars.clone()).to_svg(),
                    figure(bars.vertical()).to_svg(),
                    figure(stacked.total("sum")).to_svg(),
                ] {
                    assert!(svg.len() < 40_000, "{one} and {other} make {} bytes", svg.len());
                    for bad in ["NaN", "inf"] {
                        assert!(!svg.contains(bad), "{one} and {other} on {x:?}: {svg}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_names_in_a_figure_are_escaped() {
    let name = "<script>\"&'";
    let lines = Lines::new(Axis::linear(name, name), Axis::linear(name, name))
        .series(Series::new(name, [(1.0, 1.0)]).published(name))
        .level(name, 2.0);
    let bars = Bars::stacked(Axis::linear(name, name), [name, name])
        .total(name)
        .bar(Bar::new(name, [1.0, 2.0].map(Value::exact)).group(name).published(name));
    for plot in [figure(lines), figure(bars)] {
        let svg = Figure { title: name.to_owned(), ..plot }.sentence(name).to_svg();
        assert!(!svg.contains("<script"), "{svg}");
        assert!(svg.contains("&lt;script&gt;&quot;&amp;&#39;"), "{svg}");
    }
}

#[test]
fn the_data_of_lines_are_csv_with_a_row_for_each_point() {
    let lines = Lines::new(Axis::bytes("Size"), Axis::log("Rate", "GB/s"))
        .series(Series::new("verbs, one", [(64.0, Value::within(0.25, 0.2, 0.3))]))
        .series(
            Series::new("then", [(64.0, 0.5), (128.0, f64::NAN), (256.0, -1.0)]).published("P"),
        );
    let expected = "group,row,row_unit,column,value,low,high,unit,published\n\
                    ,64,B,\"verbs, one\",0.25,0.2,0.3,GB/s,\n\
                    ,64,B,then,0.5,,,GB/s,P\n\
                    ,256,B,then,-1,,,GB/s,P\n";
    assert_eq!(figure(lines).to_csv(), expected);
}

#[test]
fn the_data_of_bars_are_csv_with_a_row_for_each_part() {
    let bars = Bars::stacked(Axis::linear("Time", "µs"), ["o_s", "L"])
        .bar(Bar::new("shm", [Some(Value::exact(0.1)), None]).group("am"))
        .bar(Bar::new("udp", [0.2, -0.1].map(Value::exact)));
    let expected = "group,row,row_unit,column,value,low,high,unit,published\n\
                    am,shm,,o_s,0.1,,,µs,\n\
                    ,udp,,o_s,0.2,,,µs,\n\
                    ,udp,,L,-0.1,,,µs,\n";
    assert_eq!(figure(bars).to_csv(), expected);
}
