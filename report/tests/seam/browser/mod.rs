//! Reports in a browser: Chromium, where it is installed.

#[path = "../../../examples/sample/data.rs"]
mod data;
mod hard;

use std::path::Path;

use doorbell_kit::browser::{Browser, Page};
use doorbell_report::{Block, Report};

/// The browser, with a folder for the files of one test.
fn browser(test: &str) -> Option<Browser> {
    Browser::new(Path::new(env!("CARGO_TARGET_TMPDIR")).join(test))
}

/// Asserts that a report is whole in windows of several widths, light and dark, and that its tables
/// need not scroll in windows from `roomy` on.
fn assert_whole(browser: &Browser, report: &Report, roomy: u32) {
    let blocks = || report.sections.iter().flat_map(|section| &section.blocks);
    let figures = report.head.iter().chain(blocks()).filter_map(|block| match block {
        Block::Figure(figure) => Some(figure.id.as_str()),
        _ => None,
    });
    let figures: Vec<&str> = figures.collect();
    let tables = blocks().filter(|block| matches!(block, Block::Table(_))).count();
    let page = Page { html: &report.to_html(), figures: &figures, tables, roomy };
    let windows = [
        (360, false),
        (390, true),
        (700, false),
        (800, true),
        (1300, false),
        (1400, false),
        (1600, true),
    ];
    browser.assert_whole(&page, &windows);
}

#[test]
fn a_report_is_whole_in_windows_of_any_width_in_both_themes() {
    let Some(browser) = browser("sample") else { return };
    assert_whole(&browser, &data::report(), 800);
}

#[test]
fn a_report_that_is_hard_to_draw_is_whole_in_windows_of_any_width_in_both_themes() {
    let Some(browser) = browser("hard") else { return };
    assert_whole(&browser, &hard::report(), u32::MAX);
}

#[test]
fn a_browser_reads_the_json_and_the_csv_of_a_report_as_they_were_given() {
    let Some(browser) = browser("embedded") else { return };
    let report = data::report();
    let seen = browser.open(&report.to_html(), 1000, false);
    let json = report.json.clone().expect("the sample has raw results");
    assert!(json.contains("</script>"), "the sample tries to end the script");
    assert_eq!(seen.get("json"), json);
    assert_eq!(seen.all("save"), ["report.csv", "report.json"]);
    assert_eq!(seen.csv, report.to_csv());
}

#[test]
fn the_probe_finds_what_is_wrong_with_a_page() {
    let Some(browser) = browser("faults") else { return };
    let faults = "<figure class=\"drawing\" id=\"bad\"><svg viewBox=\"0 0 400 100\" width=\"300\">\
                  <text x=\"10\" y=\"50\">one</text><text x=\"12\" y=\"50\">other</text>\
                  <text x=\"390\" y=\"20\">beyond</text>\
                  <text x=\"10\" y=\"80\" font-size=\"5\">tiny</text></svg></figure>\
                  <figure class=\"table\" id=\"wide\"><div style=\"overflow:hidden\"><table><tr>\
                  <th>a</th><td style=\"padding:30px 1500px\">b</td></tr></table></div></figure>\
                  <img src=\"https://example.org/x.png\"><div style=\"width:2000px\">.</div>\
                  <script>console.warn('a warning')</script></main>";
    let page = data::report().to_html().replace("</main>", faults);
    let seen = browser.open(&page, 800, false);
    let said = |word: &str| seen.console.iter().any(|line| line.contains(word));
    assert!(said("a warning") && said("Content Security Policy"), "{:?}", seen.console);
    assert_eq!(seen.all("elsewhere"), ["https://example.org/x.png"]);
    assert_eq!(seen.all("overlap"), ["bad: one | other"]);
    assert_eq!(seen.all("cut"), ["bad: beyond", "wide: the table"]);
    assert_eq!(seen.all("small"), ["bad: tiny"]);
    assert!(seen.get("scroll-width").parse::<u32>().expect("a number") >= 2000);
}
