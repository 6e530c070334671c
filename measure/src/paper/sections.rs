//! The sections of a paper's report, each measured in its turn.

use doorbell_report::{Block, Note, Report, Section};
use serde_json::Value;

use crate::interrupts;
use crate::judging::withhold;
use crate::machine::Noise;
use crate::processors;

/// A way to measure for the sections of a report.
pub trait Measures {
    /// Returns notes on what could not be measured, or not reliably, since this was asked before.
    fn troubles(&mut self) -> Vec<Note>;
}

/// Everything that was measured for a report.
pub struct Measured {
    /// The runs, with what each has found.
    pub found: Vec<Value>,
    /// The runs that have failed, each with the reason.
    pub failed: Vec<String>,
}

/// Measures sections, and adds them to a report. A section of which nothing was measured is left
/// out, unless something is to be told of it. If the machine was busy before or after, the sections
/// say so, and nothing is concluded in them.
pub fn measure<M: Measures>(
    report: Report,
    measures: &mut M,
    make: impl FnOnce(&mut M) -> Vec<Section>,
) -> Report {
    if interrupts::is_interrupted() {
        return report;
    }
    let before = noise();
    let sections = make(measures);
    let all = [before, noise()].into_iter().flatten();
    let loudest = all.max_by(|one, other| one.share.total_cmp(&other.share));
    put(report, sections, measures.troubles(), loudest)
}

/// Measures a section in virtual time, which nothing else that the machine does can disturb, and
/// adds it to a report. A section of which nothing was measured is left out, unless something is to
/// be told of it.
pub fn simulate<M: Measures>(
    report: Report,
    measures: &mut M,
    make: impl FnOnce(&mut M) -> Section,
) -> Report {
    if interrupts::is_interrupted() {
        return report;
    }
    let section = make(measures);
    put(report, vec![section], measures.troubles(), None)
}

/// Adds sections to a report as far as they were measured, the last one with notes on what could not
/// be measured. `noise` is what was heard of the machine meanwhile.
fn put(
    report: Report,
    mut sections: Vec<Section>,
    mut troubles: Vec<Note>,
    noise: Option<Noise>,
) -> Report {
    if let Some(noise) = noise.filter(Noise::is_loud) {
        let warning = Note::warning(format!(
            "The machine was busy meanwhile: {noise}. Nothing is concluded from these numbers."
        ));
        let is_data = |block: &Block| matches!(block, Block::Table(_) | Block::Figure(_));
        let warned = |section: Section| match section.blocks.iter().any(is_data) {
            true => withhold(section).note(warning.clone()),
            false => section,
        };
        sections = sections.into_iter().map(warned).collect();
    }
    let last = sections.len().saturating_sub(1);
    sections.into_iter().enumerate().fold(report, |report, (number, section)| {
        let notes = if number == last { std::mem::take(&mut troubles) } else { Vec::new() };
        let heading = section.heading.clone();
        match section.measured() {
            Some(section) => report.section(notes.into_iter().fold(section, Section::note)),
            None if notes.is_empty() => report,
            None => report.section(notes.into_iter().fold(Section::new(heading), Section::note)),
        }
    })
}

/// Watches the processors of the two ends for a moment; `None` if that can't be done.
fn noise() -> Option<Noise> {
    let both: anyhow::Result<Vec<_>> = (0..2).map(processors::allowed).collect();
    Noise::of(&both.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use doorbell_report::{Cell, Column, NoteKind, Table};

    use super::*;

    fn section(cell: Cell) -> Section {
        let table = Table::new("table", "Times").column(Column::text("Way"));
        let table = table.column(Column::number("Time", "µs"));
        let table = table.row(["then".into(), Cell::published(3.0, "somewhere")]);
        let section = Section::new("Times").paragraph("Of messages.");
        section.table(table.row(["now".into(), cell])).note(Note::holds("It is fast."))
    }

    fn kinds(section: &Section) -> Vec<NoteKind> {
        let note = |block: &Block| match block {
            Block::Note(note) => Some(note.kind),
            _ => None,
        };
        section.blocks.iter().filter_map(note).collect()
    }

    /// Tables stood there with the published rows alone.
    #[test]
    fn a_section_without_a_measured_number_is_left_out_or_says_why_there_is_none() {
        let empty = || vec![section(Cell::Empty)];
        assert_eq!(put(Report::new("A paper"), empty(), Vec::new(), None).sections, []);
        let why = vec![Note::missing("am_lat over shm: no such device")];
        let report = put(Report::new("A paper"), empty(), why, None);
        let [section] = &report.sections[..] else { panic!("{report:?}") };
        assert_eq!((&*section.heading, kinds(section)), ("Times", vec![NoteKind::Missing]));
        assert_eq!(section.blocks.len(), 1);
    }

    /// Verdicts were given whatever else ran meanwhile.
    #[test]
    fn nothing_is_concluded_in_a_section_beside_which_the_machine_was_busy() {
        let heard = |share| Some(Noise { share, longest: Duration::from_micros(300) });
        let measured = |share| {
            let sections = vec![section(1.0.into())];
            put(Report::new("A paper"), sections, Vec::new(), heard(share)).sections
        };
        assert_eq!(kinds(&measured(0.01)[0]), [NoteKind::Holds]);
        assert_eq!(kinds(&measured(0.5)[0]), [NoteKind::Undecided, NoteKind::Warning]);
    }
}
