//! Drawings: what a figure's data look like as SVG.

mod axes;
mod bars;
mod canvas;
mod labels;
mod legend;
mod lines;
mod marker;
mod notes;
mod pieces;
mod plane;

pub use notes::notes;

use crate::markup::Markup;
use crate::number;
use crate::theme;
use crate::{Figure, Plot, Value};
use canvas::Canvas;

/// How wide a drawing is made: text has the same size in all, so a drawing for a telephone is another
/// drawing than that for a desk.
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

/// A figure as a file of its own.
pub fn standalone(figure: &Figure) -> String {
    drawn(figure, "figure", Size::Wide, Some(&theme::figure())) + "\n"
}

fn drawn(figure: &Figure, name: &str, size: Size, style: Option<&str>) -> String {
    let mut canvas = Canvas::new(size.width(), name);
    let some = match &figure.plot {
        Plot::Lines(lines) => lines::draw(lines, &mut canvas),
        Plot::Bars(bars) => bars::draw(bars, &mut canvas),
    };
    if !some {
        canvas.height = 120.0;
        canvas.text((size.width() / 2.0, 64.0), "middle", "empty", "no data");
    }
    let (width, height) = (size.width(), canvas.height.ceil());
    let view = format!("0 0 {width} {height}");
    let class = format!("plot {}", size.name());
    let labels = format!("{name}-title {name}-desc");
    let mut markup = Markup::default();
    let mut attributes: Vec<(&str, &dyn std::fmt::Display)> =
        vec![("class", &class), ("viewBox", &view), ("role", &"img"), ("aria-labelledby", &labels)];
    if style.is_some() {
        attributes.push(("xmlns", &"http://www.w3.org/2000/svg"));
        attributes.extend([("width", &width as _), ("height", &height as _)]);
    }
    markup.open("svg", &attributes);
    markup.element("title", &[("id", &format!("{name}-title"))], &figure.title);
    let description: Vec<String> =
        [figure.sentence.clone()].into_iter().chain(notes(figure)).collect();
    markup.element("desc", &[("id", &format!("{name}-desc"))], description.join(" ").trim());
    if let Some(style) = style {
        markup.element("style", &[], style);
        markup.leaf("rect", &[("class", &"paper"), ("width", &width), ("height", &height)]);
    }
    markup.raw(&canvas.markup.finish());
    markup.close("svg");
    markup.finish()
}

/// What a pointer that rests on a value is told: the name, the value and its interval.
fn told(name: &str, value: Value, unit: &str) -> String {
    let text = number::significant(value.value);
    let interval = value.interval.map_or_else(String::new, |(low, high)| {
        format!(" ({} to {})", number::significant(low), number::significant(high))
    });
    format!("{name}: {text} {unit}").trim_end().to_owned() + &interval
}
