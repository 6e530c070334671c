//! A report as one file of HTML.

use crate::draw::{self, Size};
use crate::markup::{Attribute, Markup, data_uri};
use crate::report::{Block, Note, NoteKind, Report, Section};
use crate::tabular;
use crate::theme;
use crate::{Figure, Table};

const SCRIPT: &str = include_str!("page.js");

/// The content security policy of a page: nothing is loaded from elsewhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

/// The legend of uncertain numbers in tables.
const UNCERTAIN: &str = "<p class=\"aside\"><span class=\"uncertain\">Grey</span>: too uncertain \
    to rely on. The interval is wider than a fifth of the value and, of a time, than 10 ns.</p>";

impl Report {
    /// The report as one HTML file, which loads nothing from elsewhere.
    #[must_use]
    pub fn to_html(&self) -> String {
        page(self)
    }
}

fn page(report: &Report) -> String {
    let mut markup = Markup::default();
    head(&mut markup, report);
    markup.raw("<body>\n");
    let mut names = report.named().into_iter().map(|(_, name)| name);
    let mut page = Progress { report, tables: 0, figures: 0, legend: false };
    title(&mut markup, report);
    if let Some(head) = &report.head {
        page.block(&mut markup, head, &names.next().unwrap_or_default());
    }
    // The script fills in what needs a script.
    markup.raw("<p class=\"tools\" hidden></p>\n</header>\n");
    contents(&mut markup, report);
    markup.raw("<main>\n");
    let shown: Vec<usize> = shown(report).into_iter().map(|(number, _)| number).collect();
    for (number, section) in report.sections.iter().enumerate() {
        let named: Vec<_> = names.by_ref().take(section.blocks.len()).collect();
        if !shown.contains(&number) {
            page.skip(section);
            continue;
        }
        markup.open("section", &[("id", &format!("section-{}", number + 1))]);
        markup.words_in("h2", &[], &section.heading);
        for (block, name) in section.blocks.iter().zip(&named) {
            page.block(&mut markup, block, name);
        }
        markup.raw("</section>\n");
    }
    page.undrawn(&mut markup);
    missing(&mut markup, report);
    markup.raw("</main>\n");
    data(&mut markup, report);
    markup.raw("<script>\n");
    markup.raw(SCRIPT);
    markup.raw("</script>\n</body>\n</html>\n");
    markup.finish()
}

/// How far the page is: how many tables and figures there were until now, those that are not drawn
/// included, and whether the legend of uncertain numbers was there.
struct Progress<'a> {
    report: &'a Report,
    tables: usize,
    figures: usize,
    legend: bool,
}

/// The sections that have something to show, each with its number. What was not measured stands at
/// the end of the page, and figures beyond the most that are drawn stand nowhere.
fn shown(report: &Report) -> Vec<(usize, &Section)> {
    let most = report.most_figures.as_ref().map_or(usize::MAX, |(most, _)| *most);
    let mut figures = usize::from(report.head.is_some());
    let mut has_more = |section: &Section| {
        let is_nothing = |block: &Block| match block {
            Block::Figure(_) => {
                figures += 1;
                figures > most
            }
            block => is_missing(block),
        };
        // Every block is looked at, so that all figures are counted.
        let nothing: Vec<bool> = section.blocks.iter().map(is_nothing).collect();
        nothing.is_empty() || nothing.contains(&false)
    };
    let numbered = report.sections.iter().enumerate();
    numbered.filter(|(_, section)| has_more(section)).collect()
}

/// Whether a block says that something was not measured.
fn is_missing(block: &Block) -> bool {
    matches!(block, Block::Note(Note { kind: NoteKind::Missing, .. }))
}

fn head(markup: &mut Markup, report: &Report) {
    markup.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    markup.open("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &POLICY)]);
    markup.open(
        "meta",
        &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")],
    );
    markup.open("link", &[("rel", &"icon"), ("href", &"data:,")]);
    markup.element("title", &[], &report.title);
    markup.raw("\n<style>\n");
    markup.raw(&theme::page());
    markup.raw("</style>\n</head>\n");
}

fn title(markup: &mut Markup, report: &Report) {
    markup.raw("<header>\n");
    markup.words_in("h1", &[], &report.title);
    if !report.subtitle.is_empty() {
        markup.words_in("p", &[("class", &"subtitle")], &report.subtitle);
    }
    if !report.finding.is_empty() {
        markup.words_in("p", &[("class", &"finding")], &report.finding);
    }
    for note in &report.notes {
        self::note(markup, note);
    }
}

/// Links to the sections, if there are several.
fn contents(markup: &mut Markup, report: &Report) {
    if report.sections.len() < 2 {
        return;
    }
    markup.raw("<nav aria-label=\"Contents\"><ol>");
    for (number, section) in shown(report) {
        markup.raw("<li>");
        let href = format!("#section-{}", number + 1);
        markup.words_in("a", &[("href", &href)], &section.heading);
        markup.raw("</li>");
    }
    markup.raw("</ol></nav>\n");
}

impl Progress<'_> {
    fn block(&mut self, markup: &mut Markup, block: &Block, name: &str) {
        match block {
            Block::Paragraph(text) => markup.words_in("p", &[], text),
            Block::Facts(facts) => self::facts(markup, facts),
            Block::Note(Note { kind: NoteKind::Missing, .. }) => return,
            Block::Note(note) => self::note(markup, note),
            Block::Table(table) => {
                self.tables += 1;
                let explains = !self.legend && tabular::has_uncertain(table);
                self.legend |= explains;
                let legend = if explains { UNCERTAIN } else { "" };
                self::table(markup, table, (name, self.tables), legend);
            }
            Block::Figure(figure) => {
                self.figures += 1;
                if self.figures <= self.most() {
                    self::figure(markup, figure, name, self.figures);
                }
            }
        }
        markup.raw("\n");
    }

    /// Counts the figures of a section that is not shown.
    fn skip(&mut self, section: &Section) {
        let is_figure = |block: &&Block| matches!(block, Block::Figure(_));
        self.figures += section.blocks.iter().filter(is_figure).count();
    }

    /// How many figures are drawn at the most.
    fn most(&self) -> usize {
        self.report.most_figures.as_ref().map_or(usize::MAX, |(most, _)| *most)
    }

    /// Writes how many figures are not drawn, if there are any.
    fn undrawn(&self, markup: &mut Markup) {
        let Some((_, others)) = &self.report.most_figures else { return };
        let text = match self.figures.saturating_sub(self.most()) {
            0 => return,
            1 => "One more figure is not drawn here. The CSV has its numbers.".to_owned(),
            left => format!("{left} more figures are not drawn here. The CSV has their numbers."),
        };
        markup.words_in("p", &[("class", &"aside undrawn")], &format!("{text} {others}"));
    }
}

/// Writes what was not measured, folded, if there is anything.
fn missing(markup: &mut Markup, report: &Report) {
    let blocks = report.sections.iter().flat_map(|section| &section.blocks);
    let notes: Vec<&Note> = blocks
        .filter_map(|block| match block {
            Block::Note(note) if note.kind == NoteKind::Missing => Some(note),
            _ => None,
        })
        .collect();
    if notes.is_empty() {
        return;
    }
    markup.open("details", &[("class", &"missing")]);
    markup.element("summary", &[], &format!("What was not measured ({})", notes.len()));
    markup.raw("<ul>");
    for note in notes {
        markup.words_in("li", &[], &note.text);
    }
    markup.raw("</ul></details>\n");
}

fn facts(markup: &mut Markup, facts: &[(String, String)]) {
    markup.open("dl", &[]);
    for (name, value) in facts {
        markup.raw("<div>");
        markup.words_in("dt", &[], name);
        markup.words_in("dd", &[], value);
        markup.raw("</div>");
    }
    markup.close("dl");
}

fn note(markup: &mut Markup, note: &Note) {
    let (class, sign, word) = match note.kind {
        NoteKind::Holds => ("holds", "✓", "Holds"),
        NoteKind::DoesNotHold => ("fails", "✗", "Does not hold"),
        NoteKind::Warning => ("warns", "!", "Warning"),
        NoteKind::Undecided => ("missing", "?", "Undecided"),
        NoteKind::Missing => ("missing", "–", "Missing"),
    };
    markup.open("p", &[("class", &format!("note {class}"))]);
    markup.element("span", &[("class", &"sign"), ("aria-hidden", &"true")], sign);
    markup.raw("<span>");
    markup.element("strong", &[], &format!("{word}."));
    markup.raw(" ");
    markup.words(&note.text);
    markup.raw("</span></p>");
}

/// Writes a table with its name and number, and a legend below.
fn table(markup: &mut Markup, table: &Table, (name, number): (&str, usize), legend: &str) {
    markup.open("figure", &[("class", &"table"), ("id", &name)]);
    markup.open("figcaption", &[]);
    caption(markup, &format!("Table {number}"), &table.caption, name);
    let csv = data_uri("text/csv", &table.to_csv());
    saves(markup, &[("CSV", format!("{name}.csv"), csv)]);
    markup.close("figcaption");
    tabular::table(markup, table, name);
    markup.raw(legend);
    markup.close("figure");
}

fn figure(markup: &mut Markup, figure: &Figure, name: &str, number: usize) {
    markup.open("figure", &[("class", &"drawing"), ("id", &name)]);
    markup.open("div", &[("class", &"caption")]);
    caption(markup, &format!("Figure {number}"), &figure.title, name);
    let svg = data_uri("image/svg+xml", &figure.to_svg());
    let csv = data_uri("text/csv", &figure.to_csv());
    saves(markup, &[("SVG", format!("{name}.svg"), svg), ("CSV", format!("{name}.csv"), csv)]);
    markup.close("div");
    markup.raw(&draw::inline(figure, name, Size::Wide));
    markup.raw(&draw::inline(figure, name, Size::Narrow));
    markup.open("figcaption", &[]);
    if !figure.sentence.is_empty() {
        markup.words_in("p", &[], &figure.sentence);
    }
    for note in draw::notes(figure) {
        markup.words_in("p", &[("class", &"aside")], &note);
    }
    markup.close("figcaption");
    markup.close("figure");
}

fn caption(markup: &mut Markup, number: &str, text: &str, name: &str) {
    markup.open("h3", &[("id", &format!("{name}-caption"))]);
    markup.element("span", &[("class", &"number")], &format!("{number}."));
    markup.raw(" ");
    markup.words(text);
    markup.close("h3");
}

/// Links that save files: the text of each, its file name, and its content.
fn saves(markup: &mut Markup, links: &[(&str, String, String)]) {
    markup.open("span", &[("class", &"saves")]);
    for (text, file, uri) in links {
        let label = format!("Save as {text}");
        let attributes: [Attribute; 3] =
            [("download", file), ("href", uri), ("aria-label", &label)];
        markup.element("a", &attributes, text);
    }
    markup.close("span");
}

/// The data of the whole report, which the script offers to save: a `data:` link may not be as long
/// as these may be.
fn data(markup: &mut Markup, report: &Report) {
    if let Some(json) = &report.json {
        markup.raw("<script type=\"application/json\" id=\"report-json\">");
        // Within JSON this character is in strings only, and strings may have it escaped.
        markup.raw(&json.replace('<', "\\u003c"));
        markup.raw("</script>\n");
    }
    markup.element("pre", &[("id", &"report-csv"), ("hidden", &"")], &report.to_csv());
    markup.raw("\n");
}
