//! What is drawn in figures, and what is said where something cannot be drawn.

use doorbell_report::{
    Axis, Bar, Bars, Dot, Dots, Figure, Lines, Panels, Report, Section, Series, Span, Spans, Value,
};

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

fn spans(first: f64, last: f64, whole: f64) -> Figure {
    let [first, last, whole] = [first, last, whole].map(Value::exact);
    let (label, group) = ("am".to_owned(), "packet".to_owned());
    let spans = Spans::new("Half a round trip", "µs", ["o_s", "L", "o_r", "RTT/2"]);
    figure(spans.span(Span { label, group, colour: 1, first, last, whole }))
}

/// Where L was below zero, a bar stood on the other side of zero.
#[test]
fn two_pieces_that_are_longer_than_the_whole_overlap_end_with_it_and_the_overlap_is_named() {
    let svg = spans(0.4, 0.6, 0.8).to_svg();
    let [first, last] = ["span s1", "span pale s1"].map(|class| rectangles(&svg, class)[0]);
    let unit = (first[2] - first[0]) / 0.4;
    assert!(near(last[0], first[0] + 0.2 * unit), "o_r begins within o_s: {first:?}, {last:?}");
    assert!(near(last[2], first[0] + 0.8 * unit), "o_r ends with the whole: {first:?}, {last:?}");
    // The first shape of the class is the sample in the legend.
    let overlap = rectangles(&svg, "overlap")[1];
    assert!(near(overlap[0], last[0]) && near(overlap[2], first[2]), "{overlap:?}");
    assert!(svg.contains(">overlap 0.200</text>") && svg.contains(">0.800</text>"), "{svg}");
    assert!(!svg.contains('−'), "nothing is below zero: {svg}");
}

#[test]
fn what_is_between_two_pieces_is_a_line_with_its_length() {
    let svg = spans(0.2, 0.3, 0.8).to_svg();
    let [first, last] = ["span s1", "span pale s1"].map(|class| rectangles(&svg, class)[0]);
    let between = rectangles(&svg, "between")[0];
    assert!(near(between[0], first[2]) && near(between[2], last[0]), "{between:?}");
    assert!(svg.contains(">L 0.300</text>") && !svg.contains(">overlap"), "{svg}");
}

#[test]
fn a_piece_that_is_longer_than_the_whole_begins_at_zero() {
    let svg = spans(0.1, 0.9, 0.8).to_svg();
    let [first, last] = ["span s1", "span pale s1"].map(|class| rectangles(&svg, class)[0]);
    assert!(near(first[0], last[0]), "{first:?}, {last:?}");
    assert!(svg.contains(">overlap 0.200</text>"), "{svg}");
}

#[test]
fn spans_that_are_no_times_are_left_out_and_counted() {
    for (first, last, whole) in [(f64::NAN, 1.0, 2.0), (-0.1, 1.0, 2.0), (0.0, 0.0, 0.0)] {
        let html = page(spans(first, last, whole));
        assert!(html.contains(">no data</text>"), "{html}");
        assert!(html.contains("1 value is left out that is not a finite number"), "{html}");
    }
}

#[test]
fn a_dot_plot_has_a_logarithmic_axis_where_numbers_are_far_apart_and_each_number_is_written() {
    let dots = |values: &[f64]| {
        values.iter().fold(Dots::new("Time", "µs"), |dots, value| {
            let dot = Dot::new(format!("layer {value}"), Value::exact(*value));
            dots.dot(dot.group("shm").colour(2))
        })
    };
    assert_eq!(dots(&[1.0, 2.0]).axis(), Axis::linear("Time", "µs"));
    assert_eq!(dots(&[1.0, 8.0]).axis(), Axis::log("Time", "µs"));
    assert_eq!(dots(&[0.0, 8.0]).axis(), Axis::linear("Time", "µs"));
    let svg = figure(dots(&[0.25, 36.5])).to_svg();
    for text in [">layer 0.25</text>", ">0.250</text>", ">36.5</text>", ">shm</text>"] {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert_eq!(svg.matches("class=\"marker s2\"").count(), 2, "{svg}");
    let csv = figure(dots(&[0.25])).to_csv();
    assert!(csv.ends_with("shm,layer 0.25,,Time,0.25,,,µs,\n"), "{csv}");
}

#[test]
fn small_multiples_have_the_same_axes_and_a_name_has_one_colour_in_all_of_them() {
    let lines = |series: &[(&str, f64)]| {
        let lines = Lines::new(Axis::log2("Burst", ""), Axis::linear("Time", "µs"));
        series.iter().fold(lines, |lines, (name, time)| {
            lines.series(Series::new(*name, [(2.0, *time), (64.0, 0.5)]))
        })
    };
    let panels = Panels::new()
        .panel("shm", lines(&[("verbs", 0.5), ("am", 1.0)]))
        .panel("udp", lines(&[("am", 8.0)]));
    let figure = figure(panels);
    let svg = figure.to_svg();
    // Each of the two has a sample in the legend and a line in each drawing that it is in.
    assert_eq!(svg.matches("class=\"line s0\"").count(), 2, "{svg}");
    assert_eq!(svg.matches("class=\"line s1\"").count(), 3, "{svg}");
    assert_eq!(svg.matches(">am</text>").count(), 1, "{svg}");
    // The same number is at the same height in both: the lines' last points.
    let lines = svg.split("<path d=\"M").filter(|rest| rest.contains("class=\"line s"));
    let ends = lines.filter_map(|rest| rest.split('"').next()?.rsplit(' ').next()?.parse().ok());
    let ends: Vec<f64> = ends.skip(2).collect();
    assert!(ends.len() == 3 && ends.iter().all(|end| near(*end, ends[0])), "{ends:?}: {svg}");
    assert!(figure.to_csv().contains("udp,2,,am,8,,,µs,\n"), "{}", figure.to_csv());
}

#[test]
fn a_figure_in_a_file_of_its_own_shows_its_title() {
    let long = "One way takes from 0.061 µs (Split-C, mapped, over shm) to 2.0 µs (Split-C, \
                one-sided, over udp), which is thirty-three times as long";
    let dots = Dots::new("Time", "µs").dot(Dot::new("am", Value::exact(1.0)));
    let figure = Figure { title: long.to_owned(), ..figure(dots) };
    assert_eq!(figure.to_svg().matches("class=\"heading\"").count(), 2, "it takes two lines");
    assert!(!page(figure).contains("class=\"heading\""), "a page has the title already");
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
                let dots = Dots::new("x", "").dot(Dot::new("a", value)).dot(Dot::new("b", value));
                let (first, last, whole) = (value, other.into(), one.into());
                let (label, group) = ("a".to_owned(), "b".to_owned());
                let spans = Spans::new("x", "", ["a", "b", "c", "d"]);
                let spans = spans.span(Span { label, group, colour: 9, first, last, whole });
                for svg in [
                    figure(dots).to_svg(),
                    figure(spans).to_svg(),
                    figure(Panels::new().panel("a", lines.clone())).to_svg(),
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
