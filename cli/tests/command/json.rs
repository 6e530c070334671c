//! The JSON of all commands, and the document that describes its fields.

use std::io::Write;

use doorbell_kit::lab;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::{figures, run, said};

/// Checks that a line says which schema it has, and that the document names each of its fields.
pub fn assert_documented(line: &Value) {
    assert_eq!(line["schema"], 1, "{line}");
    assert_named(line);
}

fn assert_named(value: &Value) {
    const DOCUMENT: &str = include_str!("../../../docs/reference/json.md");
    match value {
        Value::Array(all) => all.iter().for_each(assert_named),
        Value::Object(fields) => {
            for (name, value) in fields {
                // The ends of an interval are named once for all parameters.
                let plain = name.trim_end_matches("_low").trim_end_matches("_high");
                let is_named = DOCUMENT.contains(&format!("`{plain}`"));
                assert!(is_named, "docs/reference/json.md does not name `{name}`");
                assert_named(value);
            }
        }
        _ => {}
    }
}

/// Runs a command, which must succeed, and checks each line that it prints.
fn lines(arguments: &str) -> Vec<Value> {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments}: {}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let parsed = |line: &str| serde_json::from_str(line).expect("a line of JSON");
    let lines: Vec<Value> = text.lines().map(parsed).collect();
    assert!(!lines.is_empty(), "{arguments}");
    lines.iter().for_each(assert_documented);
    lines
}

#[test]
fn the_document_names_each_field_that_perf_prints() {
    lab::test(|_| {
        for arguments in [
            "write_lat --pair --device shm --iters 500",
            "tcp_bw --pair --iters 500",
            "idle_cpu --pair --seconds 0.05",
            "get_lat --pair --device shm --carrier messages --iters 500",
            "logp_am --pair --device shm --iters 2",
            "group_pingpong --pair --device shm --seconds 0.05",
            "collectives --pair --device shm --seconds 0.05",
            "receive_cpu --pair --device shm --seconds 0.05",
            "nas --pair --device shm",
            "layers --seconds 0.01",
        ] {
            assert_documented(&figures(arguments));
        }
        if cfg!(feature = "costs") {
            assert_documented(&figures("am_costs --iters 3"));
        }
    });
}

#[test]
fn the_document_names_each_field_that_logp_and_its_comparison_print() {
    let found = lines("logp --quick --device shm --layer am --json");
    let mut file = NamedTempFile::new().expect("a temporary file");
    writeln!(file, "{}", found[0]).expect("room for a line");
    let place = file.path().display();
    lines(&format!("logp --compare {place} {place} --json"));
}

#[test]
fn the_document_names_each_field_that_papers_about_exchanges_print() {
    for paper in ["emp", "rmpp"] {
        lines(&format!("paper {paper} --device shm --brief --json"));
    }
}

#[test]
fn the_document_names_each_field_that_the_doctor_prints() {
    lines("doctor --json");
}
