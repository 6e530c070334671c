//! Figures and tables of measurements on one page that needs nothing but a browser.
//!
//! A [`Report`] has [sections](Section), and a section has paragraphs, facts, notes,
//! [tables](Table) and [figures](Figure). [`Report::to_html`] makes one file of all of that:
//! styles, script, figures and data are inside, so the file can be opened from a disk, sent by
//! mail, and kept. Every table and every figure offers its numbers as CSV, every figure offers
//! itself as SVG, and the page offers the raw results as JSON.
//!
//! ```
//! use doorbell_report::{Axis, Column, Figure, Lines, Note, Report, Section, Series, Table, Value};
//!
//! let bandwidth = Lines::new(Axis::bytes("Message size"), Axis::log("Bandwidth", "GB/s"))
//!     .series(Series::new("verbs", [(64.0, 0.21), (4096.0, 4.9), (1048576.0, 11.8)]))
//!     .series(Series::new("in 1996", [(64.0, 0.006), (4096.0, 0.034)]).published("Culler, 1996"));
//! let costs = Table::new("costs", "What a message costs")
//!     .column(Column::text("Layer"))
//!     .column(Column::number("o_s", "µs"))
//!     .row(["verbs".into(), Value::within(0.031, 0.030, 0.033).into()]);
//! let report = Report::new("Messages on this machine").json(r#"{"o_s_us":0.031}"#).section(
//!     Section::new("Results")
//!         .note(Note::holds("A message costs less than a microsecond."))
//!         .table(costs)
//!         .figure(
//!             Figure::new("bandwidth", "Bandwidth by message size", bandwidth)
//!                 .sentence("Large messages move as fast as memory is copied."),
//!         ),
//! );
//! assert!(report.to_html().starts_with("<!DOCTYPE html>"));
//! ```
//!
//! # What is drawn
//!
//! [`Lines`] show how something depends on something else, and [`Panels`] are several drawings with
//! lines on the same axes. [`Bars`] and [`Dots`] compare. [`Spans`] show what a time begins and ends
//! with. Numbers that are not finite are left out; so are numbers at or below zero on a logarithmic axis, and a note under
//! the figure then says how many. A figure without any number says "no data".

#![forbid(unsafe_code)]

mod axis;
mod bars;
mod csv;
mod dots;
mod draw;
mod figure;
mod gaps;
mod html;
mod lines;
mod markup;
mod number;
mod panels;
mod plain;
mod report;
mod scale;
mod spans;
mod table;
mod tabular;
mod text;
mod theme;
mod value;
mod words;

pub use axis::{Axis, Scale};
pub use bars::{Arrangement, Bar, Bars, Direction};
pub use dots::{Dot, Dots};
pub use figure::{Figure, Plot};
pub use lines::{Lines, Series};
pub use number::brief;
pub use panels::Panels;
pub use report::{Block, Note, NoteKind, Report, Section};
pub use spans::{Span, Spans};
pub use table::{Alignment, Cell, Column, Group, Table};
pub use value::Value;
