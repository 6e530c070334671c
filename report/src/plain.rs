//! Reports in simpler kinds of blocks, for readers that draw lines, bars and tables alone.

use crate::{Bar, Bars, Block, Cell, Dots, Figure, Panels, Plot, Section, Spans, Table, Value};

impl Section {
    /// The section with lines in the place of small multiples, bars in the place of dots and spans,
    /// and the group in the name of each row of a table.
    pub(crate) fn plain(&self) -> Self {
        let blocks = self.blocks.iter().flat_map(|block| match block {
            Block::Figure(figure) => plain(figure),
            Block::Table(table) => vec![Block::Table(ungrouped(table))],
            other => vec![other.clone()],
        });
        Self { heading: self.heading.clone(), blocks: blocks.collect() }
    }
}

fn plain(figure: &Figure) -> Vec<Block> {
    let drawn = |plot: Plot| vec![Block::Figure(Figure { plot, ..figure.clone() })];
    match &figure.plot {
        Plot::Lines(_) | Plot::Bars(_) => drawn(figure.plot.clone()),
        Plot::Dots(dots) => drawn(bars(dots).into()),
        Plot::Spans(spans) => drawn(stacks(spans).into()),
        Plot::Panels(panels) => each(figure, panels),
    }
}

/// A figure for each drawing of small multiples, the last one with the sentence.
fn each(figure: &Figure, panels: &Panels) -> Vec<Block> {
    let last = panels.panels.len().saturating_sub(1);
    let panels = panels.panels.iter().enumerate();
    let each = panels.map(|(number, (heading, lines))| {
        let id = format!("{}-{}", figure.id, number + 1);
        let sentence = if number == last { &*figure.sentence } else { "" };
        Block::Figure(Figure::new(id, heading, lines.clone()).sentence(sentence))
    });
    each.collect()
}

fn bars(dots: &Dots) -> Bars {
    let bars = Bars::grouped(dots.axis(), [dots.title.clone()]);
    dots.dots.iter().fold(bars, |bars, dot| {
        let bar = Bar::new(&*dot.label, [dot.value]).group(&*dot.group);
        bars.bar(Bar { published: dot.published.clone(), ..bar })
    })
}

fn stacks(spans: &Spans) -> Bars {
    let [first, between, last, whole] = &spans.names;
    let bars = Bars::stacked(spans.axis(), [first, between, last]).total(whole);
    spans.spans.iter().fold(bars, |bars, span| {
        let values = [span.first, Value::exact(span.between()), span.last];
        bars.bar(Bar::new(&*span.label, values).group(&*span.group))
    })
}

fn ungrouped(table: &Table) -> Table {
    let mut plain = table.clone();
    plain.groups.clear();
    for (number, row) in plain.rows.iter_mut().enumerate() {
        let suffix = table.group_of(number).map_or("", |group| &group.suffix);
        if let Some(Cell::Text(name)) = row.first_mut() {
            name.push_str(suffix);
        }
    }
    plain
}
