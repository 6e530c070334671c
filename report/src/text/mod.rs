//! A report as text, plain or with the colours of terminals: no line is wider than the terminal.

mod bars;
mod curves;
mod look;
mod table;
mod wrapping;

use crate::{Block, Figure, Note, NoteKind, Plot, Report, Section};
use look::{Colour, Look};
use wrapping::{padded, wrapped};

/// The narrowest width for which text is laid out; on a narrower terminal lines wrap.
const NARROWEST: usize = 40;
/// The least width of a figure that has another one beside it, and the space between the two.
const BESIDE: usize = 37;
const SPACE: usize = 3;

impl Report {
    /// The report as plain text, `width` characters wide: tables in columns or, where these have no
    /// room, row by row; figures drawn by characters.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        self.text(width, Look::Plain)
    }

    /// The report as [`to_text`](Self::to_text) has it, for a terminal: headings are bold, and kinds
    /// of notes have colours, by escape sequences.
    #[must_use]
    pub fn to_terminal(&self, width: usize) -> String {
        self.text(width, Look::Coloured)
    }

    fn text(&self, width: usize, look: Look) -> String {
        let width = width.max(NARROWEST);
        let mut text = format!("{}\n", look.set(&self.title, Colour::Bold));
        text += &wrapped(&self.subtitle, width, "");
        text += &wrapped(&self.finding, width, "");
        for note in &self.notes {
            text += &self::note(note, width, look);
        }
        for section in &self.sections {
            text += "\n";
            text += &self::section(&section.plain(), width, look);
        }
        text
    }
}

/// A section: its heading, and its blocks with an empty line before each. Figures with lines that
/// follow each other stand beside each other where there is room.
fn section(section: &Section, width: usize, look: Look) -> String {
    let line = "─".repeat(section.heading.chars().count());
    let mut text = format!("{}\n{line}\n", look.set(&section.heading, Colour::Bold));
    let mut rest = &section.blocks[..];
    let mut after_a_note = true;
    while let Some(block) = rest.first() {
        let is_note = matches!(block, Block::Note(_));
        if rest.len() < section.blocks.len() && !(after_a_note && is_note) {
            text.push('\n');
        }
        after_a_note = is_note;
        let curves = rest.iter().map_while(curves).collect::<Vec<_>>();
        rest = &rest[curves.len().max(1)..];
        text += &match block {
            _ if curves.len() > 1 => beside(&curves, width),
            Block::Paragraph(prose) => wrapped(prose, width, ""),
            Block::Facts(facts) => self::facts(facts, width),
            Block::Table(table) => table::draw(table, width),
            Block::Figure(figure) => self::figure(figure, width),
            Block::Note(note) => self::note(note, width, look),
        };
    }
    text
}

/// The figure that a block is, if the figure has lines.
fn curves(block: &Block) -> Option<&Figure> {
    match block {
        Block::Figure(figure) if matches!(figure.plot, Plot::Lines(_)) => Some(figure),
        _ => None,
    }
}

/// Figures in rows of as many as there is room for.
fn beside(figures: &[&Figure], width: usize) -> String {
    let most = ((width + SPACE) / (BESIDE + SPACE)).clamp(1, figures.len());
    let each = (width + SPACE) / most - SPACE;
    let rows = figures.chunks(most).map(|row| {
        let drawn: Vec<String> = row.iter().map(|figure| self::figure(figure, each)).collect();
        let columns: Vec<Vec<&str>> = drawn.iter().map(|text| text.lines().collect()).collect();
        let height = columns.iter().map(Vec::len).max().unwrap_or(0);
        let line = |number: usize| {
            let cells = columns.iter().map(|lines| lines.get(number).copied().unwrap_or_default());
            let cells: String = cells.map(|cell| padded(cell, each + SPACE)).collect();
            cells.trim_end().to_owned() + "\n"
        };
        (0..height).map(line).collect::<String>()
    });
    rows.collect::<Vec<_>>().join("\n")
}

fn facts(facts: &[(String, String)], width: usize) -> String {
    let widest = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, value)| {
        let value = wrapped(value, width, &" ".repeat(widest + 2));
        format!("{}{}", padded(name, widest + 2), value.trim_start())
    });
    lines.collect()
}

fn note(note: &Note, width: usize, look: Look) -> String {
    let (kind, colour) = match note.kind {
        NoteKind::Holds => ("[holds]", Colour::Green),
        NoteKind::DoesNotHold => ("[does not hold]", Colour::Red),
        NoteKind::Undecided => ("[undecided]", Colour::Yellow),
        NoteKind::Warning => ("[warning]", Colour::Yellow),
        NoteKind::Missing => ("[not measured]", Colour::Yellow),
    };
    // The kind is coloured when the lines are broken already: escape sequences take no room.
    let text = wrapped(&format!("{kind} {}", note.text), width, "  ");
    text.trim_start().replacen(kind, &look.set(kind, colour), 1)
}

fn figure(figure: &Figure, width: usize) -> String {
    let drawn = match &figure.plot {
        Plot::Lines(lines) => curves::draw(lines, width),
        Plot::Bars(bars) => bars::draw(bars, width),
        // A section is drawn in its plain form, which has neither.
        Plot::Dots(_) | Plot::Spans(_) | Plot::Panels(_) => None,
    };
    let drawn = drawn.unwrap_or_else(|| "  no data\n".to_owned());
    let title = wrapped(&figure.title, width, "");
    match &*wrapped(&figure.sentence, width, "") {
        "" => format!("{title}\n{drawn}"),
        sentence => format!("{title}\n{drawn}\n{sentence}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Lines, Series};

    #[test]
    fn figures_with_lines_stand_beside_each_other_where_there_is_room() {
        let figure = |name: &str| {
            let lines = Lines::new(Axis::log2("Burst", ""), Axis::linear("Time", "µs"))
                .series(Series::new(name, [(1.0, 0.1), (128.0, 0.2)]));
            Figure::new(name, format!("Figure {name}"), lines).sentence("A sentence.")
        };
        let section = ["one", "two", "three"]
            .into_iter()
            .fold(Section::new("Curves"), |section, name| section.figure(figure(name)));
        let report = Report::new("Report").section(section);
        for (width, titles) in [(120, 1), (80, 2), (60, 3)] {
            let text = report.to_text(width);
            let rows = text.lines().filter(|line| line.starts_with("Figure ")).count();
            assert_eq!(rows, titles, "{width}: {text}");
            assert_eq!(text.matches("Figure ").count(), 3, "{text}");
            assert_eq!(text.matches("A sentence.").count(), 3, "{text}");
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?}: {text}");
        }
    }

    #[test]
    fn a_terminal_has_bold_headings_and_coloured_kinds_of_notes_and_plain_text_has_neither() {
        let section =
            Section::new("Claims").note(Note::holds("It holds.")).note(Note::warning("!"));
        let report = Report::new("Report").section(section);
        let plain = report.to_text(80);
        assert_eq!(plain, "Report\n\nClaims\n──────\n[holds] It holds.\n[warning] !\n");
        let coloured = report.to_terminal(80);
        assert!(coloured.contains("\u{1b}[1mClaims\u{1b}[0m\n──────\n"), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[32m[holds]\u{1b}[0m It holds."), "{coloured:?}");
        assert!(coloured.contains("\u{1b}[33m[warning]\u{1b}[0m !"), "{coloured:?}");
    }

    #[test]
    fn prose_is_wrapped_between_words_and_indented() {
        assert_eq!(wrapped("one two three", 9, "  "), "  one two\n  three\n");
        assert_eq!(wrapped("incomprehensible", 4, ""), "incomprehensible\n");
        assert_eq!(wrapped(" ", 4, "  "), "");
    }
}
