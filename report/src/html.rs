//! A report as one file of HTML.

use crate::draw::{self, Size};
use crate::markup::{Attribute, Markup, data_uri};
use crate::report::{Block, Note, NoteKind, Report};
use crate::tabular;
use crate::theme;
use crate::{Figure, Table};

const SCRIPT: &str = include_str!("page.js");

/// The content security policy of a page: nothing is loaded from elsewhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

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
    title(&mut markup, report);
    contents(&mut markup, report);
    markup.raw("<main>\n");
    let mut names = report.named().into_iter().map(|(_, name)| name);
    let mut counts = Counts { tables: 0, figures: 0 };
    for (number, section) in report.sections.iter().enumerate() {
        markup.open("section", &[("id", &format!("section-{}", number + 1))]);
        markup.words_in("h2", &[], &section.heading);
        for block in &section.blocks {
            self::block(&mut markup, block, &names.next().unwrap_or_default(), &mut counts);
        }
        markup.raw("</section>\n");
    }
    markup.raw("</main>\n");
    data(&mut markup, report);
    markup.raw("<script>\n");
    markup.raw(SCRIPT);
    markup.raw("</script>\n</body>\n</html>\n");
    markup.finish()
}

/// How many tables and figures there were until now.
struct Counts {
    tables: usize,
    figures: usize,
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
    for note in &report.notes {
        self::note(markup, note);
    }
    // The script fills in what needs a script.
    markup.raw("<p class=\"tools\" hidden></p>\n</header>\n");
}

/// Links to the sections, if there are several.
fn contents(markup: &mut Markup, report: &Report) {
    if report.sections.len() < 2 {
        return;
    }
    markup.raw("<nav aria-label=\"Contents\"><ol>");
    for (number, section) in report.sections.iter().enumerate() {
        markup.raw("<li>");
        let href = format!("#section-{}", number + 1);
        markup.words_in("a", &[("href", &href)], &section.heading);
        markup.raw("</li>");
    }
    markup.raw("</ol></nav>\n");
}

fn block(markup: &mut Markup, block: &Block, name: &str, counts: &mut Counts) {
    match block {
        Block::Paragraph(text) => markup.words_in("p", &[], text),
        Block::Facts(facts) => self::facts(markup, facts),
        Block::Note(note) => self::note(markup, note),
        Block::Table(table) => {
            counts.tables += 1;
            self::table(markup, table, name, counts.tables);
        }
        Block::Figure(figure) => {
            counts.figures += 1;
            self::figure(markup, figure, name, counts.figures);
        }
    }
    markup.raw("\n");
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

fn table(markup: &mut Markup, table: &Table, name: &str, number: usize) {
    markup.open("figure", &[("class", &"table"), ("id", &name)]);
    markup.open("figcaption", &[]);
    caption(markup, &format!("Table {number}"), &table.caption, name);
    let csv = data_uri("text/csv", &table.to_csv());
    saves(markup, &[("CSV", format!("{name}.csv"), csv)]);
    markup.close("figcaption");
    tabular::table(markup, table, name);
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
