//! `doorbell paper`, as a user runs it.

use std::path::Path;

use doorbell_kit::browser::{Browser, Page};
use serde_json::Value;

use super::{run, said};

#[test]
fn without_a_name_it_lists_the_papers() {
    let output = run("paper");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(text.starts_with("vi-am-splitc    Begel, Buonadonna, Culler, Gay:"), "{text}");
}

#[test]
fn the_first_paper_is_measured_again_table_by_table_with_its_claims_and_its_report_is_whole() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let page = place.path().join("page.html");
    let page = page.display();
    let output = run(&format!("paper vi-am-splitc --device shm --quick --report {page}"));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    for heading in [
        "Table 1: the native interface",
        "Table 2: parameters of LogP",
        "Tables 3 and 4: what the host's time is spent on",
        "Figure 2: short messages of a single sender",
        "Figure 5 and table 5: bulk transfers",
        "Designs: v1, v3, and who counts credits",
        "What can't be measured here",
    ] {
        assert!(text.contains(&format!("\n{heading}\n─")), "{heading}: {text}");
    }
    let failed: Vec<_> = text.lines().filter(|line| line.contains(" over shm: ")).collect();
    assert!(!text.contains("[not measured] logp_"), "{failed:?}");
    let claims =
        ["[holds]", "[does not hold]", "[undecided]"].map(|kind| text.matches(kind).count());
    assert!(claims.iter().sum::<usize>() >= 10, "{claims:?}: {text}");
    let html = std::fs::read_to_string(page.to_string()).expect("a report");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("paper-report");
    let Some(browser) = Browser::new(folder) else { return };
    let figures = ["figure-3", "figure-4", "figure-2", "figure-5-shm"];
    let page = Page { html: &html, figures: &figures, tables: 6, roomy: 1300 };
    browser.assert_whole(&page, &[(390, true), (1300, false)]);
}

#[test]
fn everything_that_was_measured_is_there_as_json() {
    let output = run("paper vi-am-splitc --device shm --quick --json");
    assert!(output.status.success(), "{}", said(&output));
    let all: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(all["paper"], "vi-am-splitc");
    let measured = all["measured"].as_array().expect("runs");
    assert!(measured.len() > 50, "{}", measured.len());
    assert!(measured.iter().all(|run| run["found"].is_object() && run["device"] == "shm"));
}

#[test]
fn the_second_paper_is_measured_again_beside_tcp_with_its_claims() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let page = place.path().join("page.html");
    let page = page.display();
    let output = run(&format!("paper open-mx --device packet-v2 --quick --report {page}"));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    for heading in [
        "Figures 9 and 12: ping-pongs",
        "Table 1: collectives",
        "Figure 11: processor use of receiving",
        "Figure 14: packets and blocks of large messages",
        "Table 3: kernels of the NAS Parallel Benchmarks",
        "What can't be measured here",
    ] {
        assert!(text.contains(&format!("\n{heading}\n─")), "{heading}: {text}");
    }
    // Only what no machine of this kind has is missing.
    assert_eq!(text.matches("[not measured]").count(), 3, "{text}");
    let claims =
        ["[holds]", "[does not hold]", "[undecided]"].map(|kind| text.matches(kind).count());
    assert!(claims.iter().sum::<usize>() >= 10, "{claims:?}: {text}");
    assert!(std::fs::read_to_string(page.to_string()).expect("a report").contains("figure-12"));
}

/// Measures a paper quickly, and checks that its text has all headings, and its page all figures.
fn is_measured_again(paper: &str, headings: &[&str], figures: &[&str]) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let page = place.path().join("page.html");
    let output = run(&format!("paper {paper} --device shm --quick --report {}", page.display()));
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    for heading in headings {
        assert!(text.contains(&format!("\n{heading}\n─")), "{heading}: {text}");
    }
    let missing: Vec<_> = text.lines().filter(|line| line.contains("paper-exchange")).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let html = std::fs::read_to_string(&page).expect("a report");
    for figure in figures {
        assert!(html.contains(figure), "{figure} is not on the page");
    }
}

#[test]
fn emp_is_measured_again_with_tcp_beside() {
    let headings = [
        "Figure 5: latency and throughput over shm",
        "Table 2: the cost of calls over shm",
        "Figure 6: computation beside messages over shm",
        "What can't be measured here",
    ];
    is_measured_again("emp", &headings, &["figure-5-latency-shm", "figure-6-shm"]);
}

#[test]
fn rmpp_is_measured_again_step_by_step() {
    let headings = [
        "Figure 7: bandwidth by step over shm",
        "Figure 8 and table 2: requesting more early, over shm",
        "Figures 10 and 11: availability and bandwidth over shm",
        "What can't be measured here",
    ];
    is_measured_again("rmpp", &headings, &["figure-7-shm", "figure-8-shm", "figure-11-shm"]);
}
