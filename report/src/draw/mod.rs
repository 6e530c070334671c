//! Drawings: what a figure's data look like as SVG.

mod axes;
mod bars;
mod canvas;
mod dots;
mod labels;
mod legend;
mod lines;
mod marker;
mod notes;
mod panels;
mod pieces;
mod plane;
mod spans;
mod tooltip;

pub use notes::notes;

use crate::markup::{Attribute, Markup};
use crate::theme;
use crate::words;
use crate::{Figure, Plot};
use canvas::{Area, Canvas};

/// How wide a drawing is made: text has one size in all drawings, so a telephone gets a narrower
/// drawing rather than a smaller one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// For a screen on a desk, or for paper.
    Wide,
    /// For a screen in a hand.
    Narrow,
}

impl Size {
    fn width(self) -> f64 {
        match self {
            Self::Wide => 760.0,
            Self::Narrow => 340.0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Narrow => "narrow",
        }
    }
}

/// A figure as an element of a page, whose styles are those of the page. `name` is unique in the
/// page.
pub fn inline(figure: &Figure, name: &str, size: Size) -> String {
    drawn(figure, &format!("{name}-{}", size.name()), size, None)
}

impl Figure {
    /// The drawing as an SVG file of its own, which is light or dark as its reader prefers.
    /// Programs that know no preferences, such as those that make PDF of SVG, see the light one.
    ///
    /// ```
    /// use doorbell_report::{Axis, Bar, Bars, Figure, Value};
    ///
    /// let parts = Bars::stacked(Axis::linear("Half a round trip", "µs"), ["o_s", "L", "o_r"])
    ///     .total("RTT/2")
    ///     .bar(Bar::new("shm", [0.04, -0.01, 0.06].map(Value::exact)).group("verbs"));
    /// let svg = Figure::new("parts", "Where the time goes", parts).to_svg();
    /// assert!(svg.starts_with("<svg"));
    /// ```
    #[must_use]
    pub fn to_svg(&self) -> String {
        drawn(self, "figure", Size::Wide, Some(&theme::figure())) + "\n"
    }
}

/// A drawing as an element: of a page, or with a style and margins as a file.
fn drawn(figure: &Figure, name: &str, size: Size, style: Option<&str>) -> String {
    let mut canvas = Canvas::new(size.width(), name);
    let some = match &figure.plot {
        Plot::Lines(lines) => lines::draw(lines, &mut canvas),
        Plot::Bars(bars) => bars::draw(bars, &mut canvas),
        Plot::Dots(dots) => dots::draw(dots, &mut canvas),
        Plot::Spans(spans) => spans::draw(spans, &mut canvas),
        Plot::Panels(panels) => panels::draw(panels, &mut canvas),
    };
    if !some {
        canvas.height = 120.0;
        canvas.text((size.width() / 2.0, 64.0), "middle", "empty", "no data");
    }
    let heading = if style.is_some() { heading(&mut canvas, &figure.title) } else { 0.0 };
    let margin = if style.is_some() { 16.0 } else { 0.0 };
    let (right, bottom) = (canvas.width + margin, canvas.height.ceil() + margin);
    let area = Area { left: 0.0 - margin, top: 0.0 - margin - heading, right, bottom };
    let mut markup = Markup::default();
    open(&mut markup, &area, name, &format!("plot {}", size.name()), style.is_some());
    markup.element("title", &[("id", &format!("{name}-title"))], &figure.title);
    let mut description = notes(figure);
    description.insert(0, figure.sentence.clone());
    markup.element("desc", &[("id", &format!("{name}-desc"))], description.join(" ").trim());
    if let Some(style) = style {
        markup.element("style", &[], style);
        markup.leaf("path", &[("d", &area.path()), ("class", &"paper")]);
    }
    markup.raw(&canvas.finish());
    markup.close("svg");
    markup.finish()
}

/// Writes the title above a drawing that stands alone, and returns how high the title is.
fn heading(canvas: &mut Canvas, title: &str) -> f64 {
    // The size of ordinary text that has the room of bold text of 15 units.
    const SIZE: f64 = 17.0;
    const LINE: f64 = 20.0;
    let mut lines: Vec<String> = vec![String::new()];
    for word in title.split_whitespace() {
        let last = lines.len() - 1;
        let longer = format!("{} {word}", lines[last]);
        match lines[last].is_empty() || words::width(&longer, SIZE) <= canvas.width {
            true => lines[last] = longer.trim_start().to_owned(),
            false => lines.push(word.to_owned()),
        }
    }
    let height = LINE * lines.len() as f64 + 10.0;
    for (number, line) in lines.iter().enumerate() {
        let line = words::fitted(&words::with_minus_signs(line), SIZE, canvas.width);
        canvas.text((0.0, LINE * (number as f64 + 0.75) - height), "start", "heading", &line);
    }
    height
}

/// Opens the element of a drawing that shows an area. A file, unlike a page, says what language it
/// is in, and how large it is.
fn open(markup: &mut Markup, area: &Area, name: &str, class: &str, file: bool) {
    let (width, height) = (area.width(), area.height());
    let view = format!("{} {} {width} {height}", area.left, area.top);
    let labels = format!("{name}-title {name}-desc");
    let mut attributes: Vec<Attribute> =
        vec![("class", &class), ("viewBox", &view), ("role", &"img"), ("aria-labelledby", &labels)];
    if file {
        attributes.push(("xmlns", &"http://www.w3.org/2000/svg"));
        attributes.extend([("width", &width as _), ("height", &height as _)]);
    }
    markup.open("svg", &attributes);
}
