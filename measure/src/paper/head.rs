//! The head of a paper's report: one sentence that says what was found, and a dot plot of one-way
//! times, or of what a paper measures instead.

use doorbell_report::{Block, Cell, Dot, Dots, Figure, Note, NoteKind, Plot, Report, Table, Value};

use super::titles;

/// Where in a report the numbers of its head are.
pub struct Head {
    /// With what the names of the tables, or of the figures with lines, begin.
    pub blocks: &'static [&'static str],
    /// The columns of the tables; of figures none.
    pub columns: &'static [&'static str],
    /// The place on the axis of figures.
    pub at: f64,
    /// The name and the unit of the numbers.
    pub title: &'static str,
    pub unit: &'static str,
    /// What begins the title of the dot plot, as in "One way takes".
    pub what: &'static str,
    /// The number of the colour of a row, by its name.
    pub colour: fn(&str) -> usize,
}

impl Head {
    /// Adds the head to a report. Without any measured number the report stays as it is.
    pub fn on(&self, report: Report) -> Report {
        let dots = self.dots(&report);
        let Some(range) = titles::range(&dots) else { return report };
        let range = format!("{} {range}", self.what);
        let mut words = range.chars();
        let lower: String =
            words.next().into_iter().flat_map(char::to_lowercase).chain(words).collect();
        let finding = match claims(&report) {
            None => format!("{range}."),
            Some(claims) => format!("{claims}; {lower}."),
        };
        report.head(finding, Some(Figure::new("one-way", range, dots)))
    }

    /// The dots, device by device, and the published ones last.
    fn dots(&self, report: &Report) -> Dots {
        let is_ours = |id: &str| self.blocks.iter().any(|begin| id.starts_with(begin));
        let mut all = Vec::new();
        for block in report.sections.iter().flat_map(|section| &section.blocks) {
            match block {
                Block::Table(table) if is_ours(&table.id) => all.extend(self.of_table(table)),
                Block::Figure(figure) if is_ours(&figure.id) => all.extend(self.of_lines(figure)),
                _ => {}
            }
        }
        all.sort_by_key(|dot| dot.published.is_some());
        let mut known: Vec<Dot> = Vec::new();
        for dot in all {
            if known.iter().all(|other| (&other.label, &other.group) != (&dot.label, &dot.group)) {
                known.push(dot);
            }
        }
        known.into_iter().fold(Dots::new(self.title, self.unit), Dots::dot)
    }

    fn of_table(&self, table: &Table) -> Vec<Dot> {
        let mut dots = Vec::new();
        for &name in self.columns {
            let Some(column) = table.columns.iter().position(|it| it.title == name) else {
                continue;
            };
            for (number, row) in table.rows.iter().enumerate() {
                let Some(Cell::Text(label)) = row.first() else { continue };
                let mut groups = table.groups.iter().filter(|group| group.first <= number);
                let group = groups.next_back().map_or("", |group| &group.heading);
                let group = if self.columns.len() > 1 { name } else { group };
                let dot = |value| Dot::new(label, value).colour((self.colour)(label));
                match row.get(column) {
                    Some(Cell::Number(value)) => dots.push(dot(*value).group(group)),
                    Some(Cell::Published { value, citation }) => {
                        let dot = dot(Value::exact(*value)).group("Published");
                        dots.push(dot.published(citation));
                    }
                    _ => {}
                }
            }
        }
        dots
    }

    fn of_lines(&self, figure: &Figure) -> Vec<Dot> {
        let Plot::Lines(lines) = &figure.plot else { return Vec::new() };
        let device = self.blocks.iter().find_map(|begin| figure.id.strip_prefix(begin));
        let dot = |series: &doorbell_report::Series| {
            let (_, value) = series.points.iter().find(|(at, _)| *at == self.at)?;
            let dot = Dot::new(&series.name, *value).colour((self.colour)(&series.name));
            Some(match &series.published {
                None => dot.group(device.unwrap_or_default()),
                Some(citation) => dot.group("Published").published(citation),
            })
        };
        lines.series.iter().filter_map(dot).collect()
    }
}

/// How many of the paper's claims hold, as the beginning of a sentence; `None` without any claim.
fn claims(report: &Report) -> Option<String> {
    let blocks = || report.sections.iter().flat_map(|section| &section.blocks);
    let count = |kind| {
        let is =
            |block: &&Block| matches!(block, Block::Note(Note { kind: of, .. }) if *of == kind);
        blocks().filter(is).count()
    };
    let [holds, fails, undecided] =
        [NoteKind::Holds, NoteKind::DoesNotHold, NoteKind::Undecided].map(count);
    let all = holds + fails + undecided;
    match (holds, fails) {
        (0, 0) if all == 0 => None,
        (0, 0) => Some("The paper's claims can't be judged by these numbers".to_owned()),
        _ => {
            let mut text = format!("The paper's claims hold here in {holds} of {all} cases");
            if fails > 0 {
                text += &format!(", don't hold in {fails}");
            }
            if undecided > 0 {
                text += &format!(", and can't be judged in {undecided}");
            }
            Some(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use doorbell_report::{Column, Section};

    use super::*;

    const HEAD: Head = Head {
        blocks: &["table-2"],
        columns: &["RTT/2"],
        at: 0.0,
        title: "Half a round trip",
        unit: "µs",
        what: "One way takes",
        colour: |name| usize::from(name != "verbs"),
    };

    #[test]
    fn the_head_counts_claims_and_shows_measured_times_before_published_ones() {
        let table = Table::new("table-2", "Times")
            .column(Column::text("Layer"))
            .column(Column::number("RTT/2", "µs"))
            .row(["then".into(), Cell::published(35.6, "somewhere")])
            .group("shm", " over shm")
            .row(["verbs".into(), 0.2.into()])
            .row(["am".into(), 0.26.into()])
            .row(["none".into(), Cell::Empty]);
        let section = Section::new("Times").table(table).note(Note::holds("It is fast."));
        let report = HEAD.on(Report::new("A paper").section(section.note(Note::undecided("?"))));
        assert_eq!(
            report.finding,
            "The paper's claims hold here in 1 of 2 cases, and can't be judged in 1; one way takes \
             0.20 µs (verbs, shm) to 0.26 µs (am, shm)."
        );
        let Some(Block::Figure(Figure { plot: Plot::Dots(dots), .. })) = &report.head else {
            panic!("{report:?}")
        };
        let names: Vec<_> = dots.dots.iter().map(|dot| (&*dot.label, dot.colour)).collect();
        assert_eq!(names, [("verbs", 0), ("am", 1), ("then", 1)]);
    }

    #[test]
    fn a_report_without_a_measured_time_has_no_head() {
        let report = Report::new("A paper").section(Section::new("Times").paragraph("None."));
        assert_eq!(HEAD.on(report.clone()), report);
    }
}
