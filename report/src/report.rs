//! The parts of a report, and what is made of a report.

use std::collections::HashSet;

use crate::csv;
use crate::{Figure, Table};

/// A title, sections, and the raw results.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// The title of the report.
    pub title: String,
    /// A line under the title, as in "host, date, command"; empty for none.
    pub subtitle: String,
    /// One sentence that says what was found, at the head of the page; empty for none.
    pub finding: String,
    /// The figure at the head of the page, if there is one.
    pub head: Option<Block>,
    /// How many figures the page draws at the most, the figure at the head included, and how a
    /// reader gets the others drawn; `None` for all of them. The CSV has the numbers of all figures.
    pub most_figures: Option<(usize, String)>,
    /// Notes that a reader must see before everything else, shown under the subtitle.
    pub notes: Vec<Note>,
    /// The sections, in order.
    pub sections: Vec<Section>,
    /// The raw results as JSON text, which the page offers to save; `None` to offer nothing.
    pub json: Option<String>,
}

/// A heading, and what stands under the heading.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Section {
    /// The heading of the section.
    pub heading: String,
    /// The pieces under the heading, in order.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Clone, PartialEq, Debug)]
pub enum Block {
    /// A paragraph of prose.
    Paragraph(String),
    /// Names and values, as of the machine: its processor, its kernel.
    Facts(Vec<(String, String)>),
    /// A table of numbers, with its caption and footnotes.
    Table(Table),
    /// A figure with lines or bars.
    Figure(Figure),
    /// A claim, or a warning.
    Note(Note),
}

/// A claim and whether it holds, or a warning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// Whether the note is a claim, a warning, or a gap.
    pub kind: NoteKind,
    /// The sentences of the note.
    pub text: String,
}

/// The kinds of notes: claims by whether they hold, warnings, and gaps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoteKind {
    /// A claim that the measurements support.
    Holds,
    /// A claim that the measurements contradict.
    DoesNotHold,
    /// A claim that the measurements neither support nor contradict, since the intervals overlap or
    /// are too uncertain to be judged.
    Undecided,
    /// Something that a reader must know to trust the numbers.
    Warning,
    /// Something that was not measured.
    Missing,
}

impl Report {
    /// A report without sections as yet.
    #[must_use]
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Sets the line under the title.
    #[must_use]
    pub fn subtitle(mut self, subtitle: impl Into<String>) -> Self {
        self.subtitle = subtitle.into();
        self
    }

    /// Sets the sentence and the figure at the head of the page.
    #[must_use]
    pub fn head(mut self, finding: impl Into<String>, figure: Option<Figure>) -> Self {
        self.finding = finding.into();
        self.head = figure.map(Block::Figure);
        self
    }

    /// Draws no more than a number of figures on the page. `others` is a sentence that says how a
    /// reader gets the others drawn.
    #[must_use]
    pub fn at_most_figures(mut self, most: usize, others: impl Into<String>) -> Self {
        self.most_figures = Some((most, others.into()));
        self
    }

    /// Adds a note that a reader must know before everything else.
    #[must_use]
    pub fn note(mut self, note: Note) -> Self {
        self.notes.push(note);
        self
    }

    /// Sets the raw results, which are JSON text already.
    #[must_use]
    pub fn json(mut self, json: impl Into<String>) -> Self {
        self.json = Some(json.into());
        self
    }

    /// Adds a section at the end.
    #[must_use]
    pub fn section(mut self, section: Section) -> Self {
        self.sections.push(section);
        self
    }

    /// Every number of all tables and figures as CSV in long form: a row for each number, with the
    /// table or figure, the group, row and column that the number stands in, its interval, its
    /// unit, and where the number was published.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = csv::line(["block"].iter().chain(&csv::COLUMNS));
        for (block, name) in self.named() {
            let records = match block {
                Block::Table(table) => table.records(),
                Block::Figure(figure) => figure.records(),
                _ => continue,
            };
            for record in records {
                text += &csv::line([name.clone()].into_iter().chain(record.fields()));
            }
        }
        text
    }

    /// The figures as SVG files: a file name for each, and its text.
    #[must_use]
    pub fn svgs(&self) -> Vec<(String, String)> {
        let figures = self.named().into_iter().filter_map(|(block, name)| match block {
            Block::Figure(figure) => Some((format!("{name}.svg"), figure.to_svg())),
            _ => None,
        });
        figures.collect()
    }

    /// The figure at the head and the blocks of all sections in order. Beside each table and figure stands a name that no
    /// other block has, and that links and files may have.
    pub(crate) fn named(&self) -> Vec<(&Block, String)> {
        let mut taken = HashSet::new();
        let blocks = self.sections.iter().flat_map(|section| &section.blocks);
        let blocks = self.head.iter().chain(blocks);
        let named = blocks.map(|block| {
            let id = match block {
                Block::Table(table) => &table.id,
                Block::Figure(figure) => &figure.id,
                _ => return (block, String::new()),
            };
            let plain = plain(id);
            let numbered = (2..).map(|number| format!("{plain}-{number}"));
            let mut names = [plain.clone()].into_iter().chain(numbered);
            let name = names.find(|name| taken.insert(name.clone()));
            (block, name.unwrap_or_default())
        });
        named.collect()
    }
}

/// A name in lower-case letters, digits and hyphens.
fn plain(id: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = id.chars().map(allowed).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "block".to_owned() } else { name.to_owned() }
}

impl Section {
    /// A section without blocks as yet.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        Self { heading: heading.into(), blocks: Vec::new() }
    }

    /// Adds a paragraph of prose.
    #[must_use]
    pub fn paragraph(self, text: impl Into<String>) -> Self {
        self.block(Block::Paragraph(text.into()))
    }

    /// Adds names and values.
    #[must_use]
    pub fn facts<N: Into<String>, V: Into<String>>(
        self,
        facts: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let facts = facts.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.block(Block::Facts(facts.collect()))
    }

    /// Adds a table at the end.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.block(Block::Table(table))
    }

    /// Adds a figure at the end.
    #[must_use]
    pub fn figure(self, figure: Figure) -> Self {
        self.block(Block::Figure(figure))
    }

    /// Adds a claim or a warning.
    #[must_use]
    pub fn note(self, note: Note) -> Self {
        self.block(Block::Note(note))
    }

    /// Adds a piece of any kind.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

impl Note {
    /// A claim that the measurements support.
    #[must_use]
    pub fn holds(text: impl Into<String>) -> Self {
        Self { kind: NoteKind::Holds, text: text.into() }
    }

    /// A claim that the measurements contradict.
    #[must_use]
    pub fn does_not_hold(text: impl Into<String>) -> Self {
        Self { kind: NoteKind::DoesNotHold, text: text.into() }
    }

    /// A claim that the measurements neither support nor contradict.
    #[must_use]
    pub fn undecided(text: impl Into<String>) -> Self {
        Self { kind: NoteKind::Undecided, text: text.into() }
    }

    /// Something that a reader must know to trust the numbers.
    #[must_use]
    pub fn warning(text: impl Into<String>) -> Self {
        Self { kind: NoteKind::Warning, text: text.into() }
    }

    /// Something that was not measured.
    #[must_use]
    pub fn missing(text: impl Into<String>) -> Self {
        Self { kind: NoteKind::Missing, text: text.into() }
    }
}
