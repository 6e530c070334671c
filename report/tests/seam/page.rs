//! A report as a page, as CSV and as files.

use doorbell_report::{
    Alignment, Axis, Block, Cell, Column, Figure, Lines, Note, Report, Section, Series, Table,
    Value,
};

fn costs(id: &str) -> Table {
    Table::new(id, "What a message costs")
        .column(Column::text("Layer"))
        .column(Column::number("o_s", "µs"))
        .column(Column::number("Rate, high", "1/s").decimals(0))
        .row(["am, shm".into(), Value::within(0.0312, 0.03, 0.0324).into(), 12_345_678.0.into()])
        .row(["then".into(), Cell::published(2.7, "Begel, 2001"), Cell::Empty])
        .row(["short".into()])
}

fn lines(id: &str) -> Figure {
    let lines = Lines::new(Axis::bytes("Size"), Axis::log("Rate", "GB/s"));
    Figure::new(id, "Rate", lines.series(Series::new("verbs", [(64.0, 0.5)])))
}

fn page(block: Block) -> String {
    Report::new("Page").section(Section::new("Section").block(block)).to_html()
}

#[test]
fn all_text_of_a_page_is_escaped() {
    let bad = "</script><img src=x onerror=throw>\"'&";
    let table = Table::new(bad, bad)
        .column(Column { alignment: Alignment::Right, ..Column::text(bad) })
        .column(Column::number(bad, bad))
        .row([bad.into(), Cell::published(1.0, bad)]);
    let section = Section::new(bad)
        .paragraph(bad)
        .facts([(bad, bad)])
        .note(Note::warning(bad))
        .table(table)
        .figure(Figure { title: bad.to_owned(), ..lines(bad) }.sentence(bad));
    let json = format!("{{\"text\":\"{}\"}}", bad.replace('"', "\\\""));
    let html = Report::new(bad).subtitle(bad).json(json).section(section).to_html();
    assert!(!html.contains("<img"), "{html}");
    assert_eq!(html.matches("</script>").count(), 2, "those of the page itself");
    assert!(html.contains("\\u003c/script>\\u003cimg"), "the JSON says the same in other words");
}

#[test]
fn a_measured_number_is_shown_with_its_interval_and_the_decimals_of_its_column() {
    let html = page(Block::Table(costs("costs")));
    assert!(html.contains("0.031<span class=\"after\""), "{html}");
    assert!(html.contains("title=\"0.030 to 0.032\">± 0.001</span>"), "{html}");
    assert!(html.contains(">12\u{202f}345\u{202f}678<"), "{html}");
}

#[test]
fn an_interval_that_reaches_farther_on_one_side_is_shown_by_its_ends() {
    let table = Table::new("t", "t")
        .column(Column::text("Layer"))
        .column(Column::number("L", "µs"))
        .row(["am".into(), Value::within(-0.06, -0.12, -0.05).into()]);
    let report = Report::new("Page").section(Section::new("Section").table(table));
    assert!(report.to_html().contains(">−0.120 … −0.050</span>"), "{}", report.to_html());
    assert!(report.to_text(80).contains("−0.060 −0.120 … −0.050"), "{}", report.to_text(80));
}

#[test]
fn a_published_number_is_shown_as_it_was_published_and_cited_below_the_table() {
    let html = page(Block::Table(costs("costs")));
    assert!(html.contains("<span class=\"published\" title=\"Begel, 2001\">2.7<"), "{html}");
    assert!(html.contains("<a href=\"#costs-note-1\">[1]</a>"), "{html}");
    assert!(html.contains("<li id=\"costs-note-1\">Begel, 2001</li>"), "{html}");
}

#[test]
fn empty_cells_and_numbers_that_are_not_finite_are_dashes() {
    let table = Table::new("t", "t")
        .column(Column::text("a"))
        .column(Column::number("b", ""))
        .column(Column::number("c", ""))
        .column(Column::number("d", ""))
        .row(["row".into(), Cell::Empty, f64::NAN.into()]);
    let html = page(Block::Table(table));
    assert_eq!(html.matches(">–</span>").count(), 3, "{html}");
    assert!(!html.contains("NaN"), "{html}");
}

#[test]
fn the_headings_of_a_table_say_what_they_are_headings_of() {
    let html = page(Block::Table(costs("costs")));
    assert_eq!(html.matches("scope=\"col\"").count(), 3);
    assert_eq!(html.matches("scope=\"row\"").count(), 3);
}

#[test]
fn a_note_says_what_it_is_in_words() {
    for (note, words) in [
        (Note::holds("x"), "<strong>Holds.</strong> x"),
        (Note::does_not_hold("x"), "<strong>Does not hold.</strong> x"),
        (Note::warning("x"), "<strong>Warning.</strong> x"),
        (Note::undecided("x"), "<strong>Undecided.</strong> x"),
    ] {
        let html = page(Block::Note(note));
        assert!(html.contains(words), "{words}: {html}");
    }
}

/// A column of errors stood before the numbers.
#[test]
fn what_was_not_measured_is_folded_at_the_end_and_a_section_of_nothing_else_is_left_out() {
    let first = Section::new("Times").note(Note::missing("udp: no socket")).paragraph("Of all.");
    let second = Section::new("What can't be measured").note(Note::missing("a network"));
    let html = Report::new("Page").section(first).section(second).to_html();
    let (before, folded) = html.split_once("<details class=\"missing\">").expect("it is folded");
    assert!(before.contains("Of all.") && !before.contains("no socket"), "{html}");
    assert!(!before.contains("What can&#39;t be measured"), "{html}");
    assert!(folded.contains("<summary>What was not measured (2)</summary>"), "{html}");
    assert!(folded.contains("<li>udp: no socket</li><li>a network</li>"), "{html}");
    let html = Report::new("Page").section(Section::new("All").paragraph("Of all.")).to_html();
    assert!(!html.contains("<details"), "{html}");
}

#[test]
fn an_uncertain_number_is_grey_and_one_legend_says_what_grey_means() {
    let table = |id: &str| {
        Table::new(id, "Times")
            .column(Column::text("Layer"))
            .column(Column::number("o_s", "µs"))
            .row(["certain".into(), Value::within(1.0, 0.95, 1.05).into()])
            .row(["short".into(), Value::within(0.01, 0.006, 0.014).into()])
            .row(["uncertain".into(), Value::within(1.0, 0.5, 1.5).into()])
    };
    let html = |tables: &[Table]| {
        let section = tables.iter().cloned().fold(Section::new("Section"), Section::table);
        Report::new("Page").section(section).to_html()
    };
    let both = html(&[table("one"), table("other")]);
    assert_eq!(both.matches("<td class=\"right uncertain\">1.000").count(), 2, "{both}");
    assert_eq!(both.matches("<td class=\"right uncertain\">").count(), 2, "{both}");
    assert_eq!(both.matches("<span class=\"uncertain\">Grey</span>").count(), 1, "{both}");
    let mut certain = table("one");
    certain.rows.pop();
    assert!(!html(&[certain]).contains("class=\"uncertain\""));
}

#[test]
fn rows_of_a_table_stand_in_groups_and_have_their_names_alone() {
    let table = Table::new("times", "Times")
        .column(Column::text("Layer"))
        .column(Column::number("o_s", "µs"))
        .group("shm", " over shm")
        .row(["verbs".into(), 0.25.into()])
        .row(["am".into(), Cell::Empty])
        .group("udp", " over udp")
        .row(["verbs".into(), Cell::Empty])
        .group("Published", "")
        .row(["then".into(), Cell::published(2.7, "Begel, 2001")]);
    assert_eq!(
        table.to_csv(),
        "Group,Layer,\"o_s, µs\"\nshm,verbs,0.25\nshm,am,\nudp,verbs,\nPublished,then,2.7\n"
    );
    let section = Section::new("Section").table(table);
    let report = Report::new("Page").section(section.clone());
    let heading = "<tr class=\"group\"><th colspan=\"2\" scope=\"rowgroup\" class=\"left\">";
    let html = report.to_html();
    assert_eq!(html.matches(heading).count(), 3, "{html}");
    assert!(report.to_csv().contains("times,shm,verbs,,o_s,0.25,,,µs,\n"));
    let text = report.to_text(80);
    assert!(text.contains("verbs over shm") && text.contains("\nthen "), "{text}");
    // What was not measured is left out with its group.
    let section = section.measured().expect("one is measured");
    let html = Report::new("Page").section(section).to_html();
    assert_eq!(html.matches(heading).count(), 2, "{html}");
    assert!(!html.contains("udp") && !html.contains(">am<"), "{html}");
}

#[test]
fn a_page_draws_no_more_figures_than_asked_for_and_has_the_numbers_of_all() {
    let report = Report::new("Page")
        .head("A message takes 1 µs.", Some(lines("head")))
        .section(Section::new("First").figure(lines("one")).figure(lines("two")))
        .section(Section::new("Second").figure(lines("three")));
    let drawn = |html: &str| html.matches("<figure class=\"drawing\"").count();
    assert_eq!(drawn(&report.to_html()), 4);
    let few = report.at_most_figures(2, "Ask for more.");
    let html = few.to_html();
    assert_eq!(drawn(&html), 2, "{html}");
    assert!(html.contains("2 more figures are not drawn here."), "{html}");
    assert!(html.contains("Ask for more."), "{html}");
    assert!(!html.contains("Second"), "a heading of nothing: {html}");
    for name in ["head", "one", "two", "three"] {
        assert!(few.to_csv().contains(&format!("\n{name},,64,B,verbs,0.5")), "{name}");
    }
    assert_eq!(few.svgs().len(), 4);
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("<p class=\"finding\">A message takes 1 µs.</p>") < at("id=\"head\""));
    assert!(at("id=\"head\"") < at("<main>"));
}

#[test]
fn a_negative_number_in_prose_has_the_minus_sign_that_tables_have() {
    let section = Section::new("Section")
        .note(Note::undecided("The difference is -0.120 µs."))
        .paragraph("From (-1 to 2) over packet-v2.");
    let report = Report::new("Page").section(section);
    for text in [report.to_html(), report.to_text(80)] {
        assert!(text.contains("The difference is −0.120 µs."), "{text}");
        assert!(text.contains("From (−1 to 2) over packet-v2."), "{text}");
    }
}

#[test]
fn a_table_is_csv_with_columns_for_the_ends_of_intervals() {
    let expected = "Layer,\"o_s, µs\",\"o_s, µs, low\",\"o_s, µs, high\",\"Rate, high, 1/s\"\n\
                    \"am, shm\",0.0312,0.03,0.0324,12345678\n\
                    then,2.7,,,\n\
                    short,,,,\n";
    assert_eq!(costs("costs").to_csv(), expected);
}

#[test]
fn the_csv_of_a_report_has_every_number_of_its_tables_and_figures() {
    let section =
        Section::new("All").table(costs("costs")).paragraph("words").figure(lines("rate"));
    let csv = Report::new("Report").section(section).to_csv();
    let expected = "block,group,row,row_unit,column,value,low,high,unit,published\n\
                    costs,,\"am, shm\",,o_s,0.0312,0.03,0.0324,µs,\n\
                    costs,,\"am, shm\",,\"Rate, high\",12345678,,,1/s,\n\
                    costs,,then,,o_s,2.7,,,µs,\"Begel, 2001\"\n\
                    rate,,64,B,verbs,0.5,,,GB/s,\n";
    assert_eq!(csv, expected);
}

#[test]
fn blocks_of_one_name_have_files_and_links_of_their_own() {
    let section = Section::new("All")
        .figure(lines("Rate / size"))
        .table(costs("rate---size"))
        .figure(lines("rate---size"))
        .figure(lines("«»"));
    let report = Report::new("Report").section(section);
    let svgs = report.svgs();
    let names: Vec<&str> = svgs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["rate---size.svg", "rate---size-3.svg", "block.svg"]);
    assert!(svgs.iter().all(|(_, svg)| svg.starts_with("<svg") && svg.contains("<style>")));
    let html = report.to_html();
    let ids: Vec<&str> =
        html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let unique: std::collections::HashSet<&&str> = ids.iter().collect();
    assert_eq!(unique.len(), ids.len(), "{ids:?}");
}

#[test]
fn a_report_without_anything_is_a_page() {
    let html = Report::default().to_html();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"), "{html}");
}
