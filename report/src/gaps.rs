//! What a report leaves out: tables and figures, rows, lines and bars without a measured number.

use crate::{Bar, Block, Cell, Figure, Lines, Plot, Section, Series, Span, Table, Value};

impl Section {
    /// The section without what was not measured: rows, lines and bars that have neither a measured
    /// nor a published number, and tables and figures that have no measured number. `None` if the
    /// section has tables or figures, and none of them is left.
    #[must_use]
    pub fn measured(self) -> Option<Self> {
        let is_data = |block: &Block| matches!(block, Block::Table(_) | Block::Figure(_));
        let has_data = self.blocks.iter().any(is_data);
        let blocks: Vec<_> = self.blocks.into_iter().filter_map(measured).collect();
        let has_lost_all = has_data && !blocks.iter().any(is_data);
        (!has_lost_all).then_some(Self { heading: self.heading, blocks })
    }
}

/// A block without what was not measured; `None` for a table or a figure without any measured
/// number.
fn measured(block: Block) -> Option<Block> {
    match block {
        Block::Table(table) => of_table(table).map(Block::Table),
        Block::Figure(figure) => of_figure(figure).map(Block::Figure),
        other => Some(other),
    }
}

fn of_table(mut table: Table) -> Option<Table> {
    let is_measured = |cell: &Cell| matches!(cell, Cell::Number(value) if value.finite().is_some());
    let is_published = |cell: &Cell| matches!(cell, Cell::Published { .. });
    table.keep(|row| row.iter().any(|cell| is_measured(cell) || is_published(cell)));
    table.rows.iter().flatten().any(is_measured).then_some(table)
}

fn of_figure(mut figure: Figure) -> Option<Figure> {
    let is_measured = match &mut figure.plot {
        Plot::Lines(lines) => of_lines(lines),
        Plot::Bars(bars) => {
            let has_values =
                |bar: &Bar| bar.values.iter().flatten().any(|value| value.finite().is_some());
            bars.bars.retain(|bar| has_values(bar));
            bars.bars.iter().any(|bar| bar.published.is_none())
        }
        Plot::Dots(dots) => {
            dots.dots.retain(|dot| dot.value.and_then(Value::finite).is_some());
            dots.dots.iter().any(|dot| dot.published.is_none())
        }
        Plot::Spans(spans) => {
            spans.spans.retain(Span::is_drawable);
            !spans.spans.is_empty()
        }
        Plot::Panels(panels) => {
            panels.panels.retain_mut(|(_, lines)| of_lines(lines));
            !panels.panels.is_empty()
        }
    };
    is_measured.then_some(figure)
}

/// Leaves out lines without points. Returns whether a measured line is left.
fn of_lines(lines: &mut Lines) -> bool {
    let has_points =
        |series: &Series| series.points.iter().any(|(_, value)| value.finite().is_some());
    lines.series.retain(|series| has_points(series));
    lines.series.iter().any(|series| series.published.is_none())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Bars, Column, Note};

    fn table(rows: impl IntoIterator<Item = [Cell; 2]>) -> Table {
        let table = Table::new("table", "Times").column(Column::text("Way"));
        let table = table.column(Column::number("Time", "µs"));
        rows.into_iter().fold(table, Table::row)
    }

    fn lines(points: Vec<(f64, f64)>) -> Figure {
        let then = Series::new("then", [(1.0, 9.0)]).published("somewhere");
        let lines = Lines::new(Axis::bytes("Length"), Axis::log("Time", "µs"));
        Figure::new("lines", "Times", lines.series(Series::new("now", points)).series(then))
    }

    fn bars(value: Option<Value>) -> Figure {
        let bars = Bars::grouped(Axis::log("Time", "µs"), ["time"]);
        let then = Bar::new("then", [Some(Value::exact(9.0))]).published("somewhere");
        Figure::new("bars", "Times", bars.bar(Bar::new("now", [value])).bar(then))
    }

    #[test]
    fn rows_that_were_not_measured_are_left_out_and_published_ones_stay() {
        let published = || Cell::published(9.0, "somewhere");
        let rows = [["a".into(), 1.0.into()], ["b".into(), Cell::Empty], ["c".into(), published()]];
        let section = Section::new("Times").table(table(rows)).measured().expect("one is measured");
        let Block::Table(left) = &section.blocks[0] else { panic!("{section:?}") };
        let names: Vec<_> = left.rows.iter().map(|row| row[0].clone()).collect();
        assert_eq!(names, ["a".into(), "c".into()]);
    }

    #[test]
    fn a_section_is_left_out_whose_tables_and_figures_have_no_measured_number() {
        let table = || table([["c".into(), Cell::published(9.0, "somewhere")]]);
        let empty = Section::new("Times").paragraph("Of messages.").table(table());
        let empty = empty.figure(lines(Vec::new())).figure(bars(None));
        assert_eq!(empty.clone().measured(), None);
        let some = empty.figure(bars(Some(Value::exact(1.0)))).measured().expect("bars are there");
        assert_eq!(some.blocks.len(), 2, "{some:?}");
        let words = Section::new("This machine").note(Note::missing("a network"));
        assert_eq!(words.clone().measured(), Some(words));
    }
}
