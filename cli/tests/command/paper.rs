//! `doorbell paper`, as a user runs it.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;

use doorbell_kit::browser::{self, Browser};
use doorbell_kit::lab;
use serde_json::Value;

use super::logp::interrupted_when;
use super::{assert_fits, doorbell, json, on_terminal, run, said};

/// Whether the command can break costs down.
const COSTS: bool = cfg!(feature = "costs");

#[test]
fn without_a_name_it_lists_the_papers() {
    let output = run("paper");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let names: Vec<_> = text.lines().filter_map(|line| line.split("  ").next()).collect();
    assert_eq!(names, ["vi-am-splitc", "open-mx", "fast-messages", "emp", "rmpp"]);
    assert!(text.starts_with("vi-am-splitc    Begel, Buonadonna, Culler, Gay:"), "{text}");
}

/// A paper, and what the report of it must have when everything was measured.
struct Whole<'a> {
    paper: &'a str,
    device: &'a str,
    headings: &'a [&'a str],
    figures: &'a [&'a str],
    tables: &'a [&'a str],
    /// How many of the paper's claims are judged, whether they hold here or not.
    claims: usize,
    /// How many notes tell what no machine of this kind can show, and how many more tell what takes
    /// four processors.
    beyond: [usize; 2],
}

impl Whole<'_> {
    /// Measures the paper, each thing briefly, and checks that its report is whole. Returns its page.
    fn assert(&self) -> String {
        let Self { paper, device, headings, .. } = self;
        let place = tempfile::tempdir().expect("a temporary directory");
        let page = place.path().join("page.html");
        let shown = page.display();
        let arguments = format!("paper {paper} --device {device} --brief --report {shown}");
        let mut command = doorbell(&arguments);
        command.env("NO_COLOR", "1");
        let output = on_terminal(80, command);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_fits(&text, paper);
        // Whatever could not be measured, the status tells.
        assert_eq!(output.status.code(), Some(0), "{}{text}", said(&output));
        let found: Vec<_> = text
            .lines()
            .zip(text.lines().skip(1))
            .filter_map(|(line, under)| under.starts_with('─').then_some(line))
            .collect();
        assert_eq!(found, [*headings, &["What can't be measured here", "This machine"]].concat());
        let [always, more] = self.beyond;
        let processors = thread::available_parallelism().map_or(1, Into::into);
        let beyond = always + if processors < 4 { more } else { 0 };
        assert_eq!(text.matches("[not measured]").count(), beyond, "{text}");
        let kinds = ["[holds]", "[does not hold]", "[undecided]"];
        let claims: usize = kinds.map(|kind| text.matches(kind).count()).iter().sum();
        assert_eq!(claims, self.claims, "{text}");
        assert!(!text.contains("no data") && !text.contains("NaN"), "{text}");
        let html = fs::read_to_string(page).expect("a report");
        assert!(html.contains(r#""failed":[]"#) && html.contains(r#""interrupted":false"#));
        for name in self.figures.iter().chain(self.tables).chain(&["one-way"]) {
            assert!(html.contains(&format!("id=\"{name}\"")), "{name} is not on the page");
        }
        assert!(html.contains("<p class=\"finding\">The paper&#39;s claims "), "{html}");
        let drawn = html.matches("<figure class=\"drawing\"").count();
        assert!(drawn <= 6, "{drawn} figures are drawn");
        let folded = html.split("<details class=\"missing\">").nth(1).expect("it is folded");
        assert_eq!(folded.matches("<li>").count(), beyond, "{folded}");
        html
    }
}

#[test]
fn the_first_paper_is_measured_again_table_by_table_with_its_claims_and_its_report_is_whole() {
    // Without the feature, tables 3 and 4 are not measured, nor the figure and the claim of each.
    let (figures, tables) = (
        ["figure-3", "figure-4", "figure-2", "figure-5-shm"],
        ["table-3", "table-4", "table-1", "table-2", "table-5", "designs"],
    );
    let first = if COSTS { 0 } else { 2 };
    let (figures, tables) = (&figures[first..], &tables[first..]);
    let headings = [
        "Table 1: the native interface",
        "Table 2: parameters of LogP",
        "Tables 3 and 4: what the host's time is spent on",
        "Figure 2: short messages of a single sender",
        "Figure 5 and table 5: bulk transfers",
        "Designs: v1, v3, and who counts credits",
    ];
    let (claims, beyond) = if COSTS { (13, [1, 1]) } else { (11, [2, 1]) };
    let whole = Whole {
        paper: "vi-am-splitc",
        device: "shm",
        headings: &headings,
        figures,
        tables,
        claims,
        beyond,
    };
    let html = whole.assert();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("paper-report");
    let Some(browser) = Browser::new(folder) else { return };
    let figures = [&["one-way"], figures].concat();
    let page = browser::Page { html: &html, figures: &figures, tables: tables.len(), roomy: 1300 };
    browser.assert_whole(&page, &[(360, true), (1300, false)]);
}

#[test]
fn everything_that_was_measured_is_there_as_json() {
    let output = run("paper vi-am-splitc --device shm --brief --json");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&all["paper"], &all["interrupted"]), (&"vi-am-splitc".into(), &false.into()));
    assert_eq!(all["failed"], Value::Array(Vec::new()));
    json::assert_documented(&all);
    let measured = all["measured"].as_array().expect("runs");
    // Each twice; the two breakdowns of costs are there with the feature alone.
    assert_eq!(measured.len(), if COSTS { 100 } else { 96 });
    assert!(measured.iter().all(|run| run["found"].is_object() && run["device"] == "shm"));
}

#[test]
fn the_second_paper_is_measured_again_beside_tcp_with_its_claims() {
    let headings = [
        "Figures 9 and 12: ping-pongs",
        "Table 1: collectives",
        "Figure 11: processor use of receiving",
        "Figure 14: packets and blocks of large messages",
        "Table 3: kernels of the NAS Parallel Benchmarks",
    ];
    let whole = Whole {
        paper: "open-mx",
        device: "packet-v2",
        headings: &headings,
        figures: &["figure-9", "figure-12", "figure-11", "figure-14-packet-v2"],
        tables: &["figure-9-table", "table-1-packet-v2", "table-3"],
        claims: 12,
        beyond: [3, 0],
    };
    whole.assert();
}

#[test]
fn fast_messages_is_measured_again_with_its_claims() {
    let headings = ["Figure 5: streams", "Figure 6: a layer on streams"];
    let whole = Whole {
        paper: "fast-messages",
        device: "shm",
        headings: &headings,
        figures: &["bandwidth", "shares"],
        tables: &["figure-5", "figure-6"],
        claims: 3,
        beyond: [1, 0],
    };
    let html = whole.assert();
    for published in ["77", "11", "90", "Lauria"] {
        assert!(html.contains(published), "{published}");
    }
}

#[test]
fn emp_is_measured_again_with_tcp_beside() {
    let headings = [
        "Figure 5: latency and throughput over shm",
        "Table 2: the cost of calls over shm",
        "Figure 6: computation beside messages over shm",
        "Frames out of order, on a simulated link",
    ];
    let whole = Whole {
        paper: "emp",
        device: "shm",
        headings: &headings,
        figures: &[
            "figure-5-latency-shm",
            "figure-5-bandwidth-shm",
            "figure-6-shm",
            "availability-shm",
        ],
        tables: &["table-2-shm", "out-of-order"],
        claims: 6,
        beyond: [1, 1],
    };
    let html = whole.assert();
    let row = |carrier: &str| html.contains(&format!(">{carrier}</"));
    for how in ["selective repeat", "go-back-N"] {
        assert!(row(&format!("Reliable connection, {how}")), "{how}");
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emp-report");
    let Some(browser) = Browser::new(folder) else { return };
    let figures = [&["one-way"], whole.figures].concat();
    let tables = whole.tables.len();
    let page = browser::Page { html: &html, figures: &figures, tables, roomy: 1300 };
    browser.assert_whole(&page, &[(360, true), (1300, false)]);
}

/// Of the offloaded steps nothing could be measured: messages both ways with placed frames came to
/// a standstill. The test looked for the name of the command, which errors no longer had, and
/// passed.
#[test]
fn rmpp_is_measured_again_step_by_step() {
    let headings = [
        "Figure 7: bandwidth by step over shm",
        "Figure 8 and table 2: requesting more early, over shm",
        "Figures 10 and 11: availability and bandwidth over shm",
    ];
    let whole = Whole {
        paper: "rmpp",
        device: "shm",
        headings: &headings,
        figures: &["figure-7-shm", "figure-8-shm", "figure-10-bandwidth-shm", "figure-11-shm"],
        tables: &["figure-7-longest-shm", "table-2-shm", "figure-11-best-shm"],
        claims: 10,
        beyond: [1, 1],
    };
    whole.assert();
}

/// The exchange hung, 10 of 10 times, over shared memory and raw Ethernet.
#[test]
fn messages_both_ways_with_placed_frames_are_measured_over_each_device() {
    lab::test(|_| {
        for device in ["shm", "packet"] {
            for step in [1, 2] {
                let output = run(&format!(
                    "paper-exchange latency --protocol rmpp --step {step} --sizes 4096,20000 \
                     --frame 1388 --device {device}"
                ));
                assert!(output.status.success(), "{device}, {step}: {}", said(&output));
                let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
                let found = all["found"].as_array().expect("an entry for each size");
                assert_eq!(found.len(), 2, "{all}");
                let time = |entry: &Value| entry["time_us"]["value"].as_f64();
                assert!(found.iter().all(|entry| time(entry) > Some(0.0)), "{all}");
                assert!(all["counted"]["placed"].as_u64() > Some(1000), "{all}");
            }
        }
    });
}

/// The whole report was written, with tables of published numbers alone, and the status was 0.
#[test]
fn an_interrupted_report_says_so_at_its_head_and_has_what_was_measured_alone() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut command = doorbell("paper emp --device shm --quick");
    command.current_dir(&place);
    // The first section has been measured when the second one is.
    let output = interrupted_when(command, "calls");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told =
        "[warning] This report is a part only: the measurements were interrupted after 6 runs.";
    let head = text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    assert!(head.contains(told), "{text}");
    assert!(said(&output).contains("interrupted after 6 runs"), "{}", said(&output));
    assert!(text.contains("Figure 5: latency and throughput over shm\n─"), "{text}");
    for absent in ["Table 2: the cost of calls", "Figure 6", "not measured µs"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let html = fs::read_to_string(place.path().join("doorbell-emp.html")).expect("a report");
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("the measurements were interrupted after 6 runs") < at("<main>"));
    assert!(html.contains(r#""interrupted":true"#));
}

/// What had failed was a note far below, and the status was 0.
#[test]
fn a_report_with_failed_measurements_names_them_and_exits_with_3() {
    // TCP is measured over a cable, which this program `ip` does not lay.
    let place = tempfile::tempdir().expect("a temporary directory");
    let program = place.path().join("ip");
    fs::write(&program, "#!/bin/sh\nexit 1\n").expect("room for a program");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = doorbell("paper emp --device shm --brief");
    let output = command.env("PATH", place.path()).current_dir(&place).output();
    let output = output.expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(3), "{}{text}", said(&output));
    let head = text.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    let told = "[warning] This report is a part only: 4 measurements have failed";
    assert!(head.contains(told), "{text}");
    for failed in ["latency, TCP: ", "stream, TCP: ", "calls, TCP: ", "share, TCP: "] {
        assert!(text.contains(&format!("[not measured] {failed}")), "{failed}: {text}");
    }
    assert!(text.contains("EMP, run by the program"), "{text}");
    // What a claim compares was not measured.
    assert!(!text.contains("by TCP."), "{text}");
    assert!(!text.contains("\nTCP  "), "a row without a number: {text}");
}
