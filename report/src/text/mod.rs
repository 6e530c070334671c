//! A report as plain text for terminals: no colour, and no line wider than the terminal.

mod bars;
mod curves;
mod table;

use crate::{Block, Figure, Note, NoteKind, Plot, Report, Section};

/// The narrowest width for which text is laid out; on a narrower terminal lines wrap.
const NARROWEST: usize = 40;
/// The widest line of prose.
const PROSE: usize = 100;

impl Report {
    /// The report as text for a terminal that is `width` characters wide: tables in columns or, where
    /// these have no room, row by row; figures drawn by characters.
    #[must_use]
    pub fn to_text(&self, width: usize) -> String {
        let width = width.max(NARROWEST);
        let mut text = format!("{}\n", self.title);
        text += &wrapped(&self.subtitle, width, "");
        for section in &self.sections {
            text += "\n";
            text += &self::section(section, width);
        }
        text
    }
}

/// A section: its heading, and its blocks with an empty line before each.
fn section(section: &Section, width: usize) -> String {
    let line = "─".repeat(section.heading.chars().count());
    let mut text = format!("{}\n{line}\n", section.heading);
    for (number, block) in section.blocks.iter().enumerate() {
        let after_a_note = number > 0 && matches!(section.blocks[number - 1], Block::Note(_));
        if number > 0 && !(after_a_note && matches!(block, Block::Note(_))) {
            text.push('\n');
        }
        text += &match block {
            Block::Paragraph(prose) => wrapped(prose, width, ""),
            Block::Facts(facts) => self::facts(facts, width),
            Block::Table(table) => table::draw(table, width),
            Block::Figure(figure) => self::figure(figure, width),
            Block::Note(note) => self::note(note, width),
        };
    }
    text
}

fn facts(facts: &[(String, String)], width: usize) -> String {
    let widest = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines = facts.iter().map(|(name, value)| {
        let value = wrapped(value, width, &" ".repeat(widest + 2));
        format!("{}{}", padded(name, widest + 2), value.trim_start())
    });
    lines.collect()
}

fn note(note: &Note, width: usize) -> String {
    let kind = match note.kind {
        NoteKind::Holds => "holds",
        NoteKind::DoesNotHold => "does not hold",
        NoteKind::Undecided => "undecided",
        NoteKind::Warning => "warning",
        NoteKind::Missing => "not measured",
    };
    wrapped(&format!("[{kind}] {}", note.text), width, "  ").trim_start().to_owned()
}

fn figure(figure: &Figure, width: usize) -> String {
    let drawn = match &figure.plot {
        Plot::Lines(lines) => curves::draw(lines, width),
        Plot::Bars(bars) => bars::draw(bars, width),
    };
    let drawn = drawn.unwrap_or_else(|| "  no data\n".to_owned());
    let title = wrapped(&figure.title, width, "");
    format!("{title}\n{drawn}\n{}", wrapped(&figure.sentence, width, ""))
}

/// Prose in lines of `width` at most, or of the words' own lengths where these are longer. Each line
/// begins with `indent`. Without any word the text is empty.
fn wrapped(prose: &str, width: usize, indent: &str) -> String {
    let room = width.min(PROSE).saturating_sub(indent.chars().count());
    let mut text = String::new();
    let mut used = 0;
    for word in prose.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length <= room {
            text.push(' ');
            used += 1 + length;
        } else {
            text += if used > 0 { "\n" } else { "" };
            text += indent;
            used = length;
        }
        text += word;
    }
    if used > 0 {
        text.push('\n');
    }
    text
}

/// A text followed by spaces up to a width.
fn padded(text: &str, width: usize) -> String {
    text.to_owned() + &" ".repeat(width.saturating_sub(text.chars().count()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_wrapped_between_words_and_indented() {
        assert_eq!(wrapped("one two three", 9, "  "), "  one two\n  three\n");
        assert_eq!(wrapped("incomprehensible", 4, ""), "incomprehensible\n");
        assert_eq!(wrapped(" ", 4, "  "), "");
    }
}
