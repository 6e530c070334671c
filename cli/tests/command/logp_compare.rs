//! `doorbell logp --compare`, as a user runs it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{doorbell, said};

/// A line as `--json` prints it, whose overheads are `o_s`, give or take a hundredth, and whose
/// other parameters are always the same.
fn line(layer: &str, o_s: f64) -> Value {
    json!({
        "layer": layer, "carrier": null, "device": "shm",
        "o_s_us": o_s, "o_s_us_low": 0.99 * o_s, "o_s_us_high": 1.01 * o_s,
        "g_us": 0.5, "g_us_low": 0.4, "g_us_high": 0.6,
    })
}

fn file(lines: &[Value]) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    lines.iter().for_each(|line| writeln!(file, "{line}").expect("room for some lines"));
    file
}

fn compared(before: &[Value], after: &[Value], how: &str) -> (Option<i32>, String, String) {
    let (before, after) = (file(before), file(after));
    let mut command = doorbell("logp --compare");
    command.args([before.path(), after.path()]).args(how.split_whitespace());
    let output = command.output().expect("the command runs");
    let found = String::from_utf8(output.stdout.clone()).expect("text");
    (output.status.code(), found, said(&output))
}

#[test]
fn a_difference_beyond_both_intervals_is_told_and_another_is_chance() {
    let (status, found, _) = compared(&[line("am", 1.0)], &[line("am", 1.2)], "");
    assert_eq!(status, Some(0));
    assert!(found.starts_with("Active Messages over shm\n"), "{found}");
    let row = |name: &str| found.lines().find(|line| line.starts_with(name)).expect("a row");
    assert!(row("  o_s ").ends_with("+20.0 %"), "{found}");
    assert!(row("  g ").ends_with("no difference beyond chance"), "{found}");
    assert!(
        found.ends_with(
            "1 of 2 differ by more than chance: their intervals have nothing in common\n"
        )
    );
}

#[test]
fn a_comparison_is_json_for_programs() {
    let (status, found, _) = compared(&[line("am", 1.0)], &[line("am", 0.5)], "--json");
    assert_eq!(status, Some(0));
    let lines: Vec<Value> =
        found.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!((&lines[0]["parameter"], &lines[0]["significant"]), (&"o_s".into(), &true.into()));
    assert_eq!(lines[0]["percent"], -50.0);
    assert_eq!(lines[1]["significant"], false);
}

#[test]
fn a_comparison_is_comma_separated_values_for_programs() {
    let (status, found, _) = compared(&[line("am", 1.0)], &[line("am", 0.5)], "--csv");
    assert_eq!(status, Some(0));
    let expected = "layer,carrier,device,parameter,unit,before,\"before, low\",\"before, high\",\
                    after,\"after, low\",\"after, high\",percent,significant\n\
                    am,,shm,o_s,µs,1,0.99,1.01,0.5,0.495,0.505,-50,true\n\
                    am,,shm,g,µs,0.5,0.4,0.6,0.5,0.4,0.6,0,false\n";
    assert_eq!(found, expected);
}

/// The value had three hundred digits.
#[test]
fn a_number_of_many_digits_is_told_by_a_power_of_ten() {
    let (status, found, _) = compared(&[line("am", 1.0)], &[line("am", -1e300)], "");
    assert_eq!(status, Some(0));
    let row = found.lines().nth(1).expect("a row");
    assert!(row.contains("    1.000 →  −1.000e300 µs") && row.ends_with("  −1.0e302 %"), "{row}");
}

/// The lines that the documentation has a reader type for a baseline.
fn recipe() -> Vec<&'static str> {
    let text = include_str!("../../../docs/guides/logp.md");
    let (_, text) = text.split_once("a baseline for continuous integration is").expect("a recipe");
    let (text, _) = text.split_once("\n## ").expect("another heading");
    let blocks = text.split("```").skip(1).step_by(2);
    let shell = blocks.filter_map(|block| block.strip_prefix("sh elsewhere\n"));
    let lines = shell.flat_map(str::lines);
    lines.map(|line| line.split(" #").next().unwrap_or_default().trim()).collect()
}

#[test]
fn the_recipe_for_continuous_integration_runs_as_printed_from_a_fresh_directory() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let program = Path::new(env!("CARGO_BIN_EXE_doorbell"));
    let folder = program.parent().expect("a program is in a folder").display();
    let path = format!("{folder}:{}", std::env::var("PATH").unwrap_or_default());
    let recipe = recipe();
    let (compare, measure): (Vec<_>, Vec<_>) =
        recipe.into_iter().partition(|line| line.contains("--compare"));
    assert_eq!((measure.len(), compare.len()), (2, 1), "{measure:?}, {compare:?}");
    let run = |line: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", line]).current_dir(&place).env("PATH", &path);
        command.output().expect("there is a shell")
    };
    for line in measure {
        let output = run(&line.replacen("doorbell logp", "doorbell logp --quick", 1));
        assert!(output.status.success(), "{line}: {}", said(&output));
    }
    let output = run(compare[0]);
    let found = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(found.contains("Active Messages over shm\n  o_s "), "{found}");
    assert!(found.contains("differ by more than chance"), "{found}");
    // Whether a quick run is slower than another one is up to what else the machine does.
    let slower = said(&output).contains("greater by more than 25 %, and not by chance");
    assert_eq!(output.status.code(), Some(i32::from(slower)), "{}", said(&output));
    // A baseline that was faster by far fails.
    let baseline = place.path().join("baseline.json");
    let lines = fs::read_to_string(&baseline).expect("a baseline");
    let lines = lines.lines().map(|line| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        if line["layer"] == "am" {
            for end in ["", "_low", "_high"] {
                line[format!("o_s_us{end}")] = json!(1e-6);
            }
        }
        format!("{line}\n")
    });
    fs::write(&baseline, lines.collect::<String>()).expect("room for some lines");
    let output = run(compare[0]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("o_s of Active Messages over shm"), "{}", said(&output));
}

#[test]
fn what_has_become_slower_than_is_allowed_is_a_failure_that_names_it() {
    let (before, after) = ([line("am", 1.0)], [line("am", 1.2)]);
    let (status, _, said) = compared(&before, &after, "--fail-above 10");
    assert_eq!(status, Some(1));
    assert!(said.contains("not by chance: o_s of Active Messages over shm"), "{said}");
    assert_eq!(compared(&before, &after, "--fail-above 25").0, Some(0));
    assert_eq!(compared(&after, &before, "--fail-above 10").0, Some(0), "faster is no failure");
}

#[test]
fn ratios_to_verbs_do_not_change_with_the_speed_of_the_machine() {
    let before = [line("verbs", 1.0), line("am", 2.0)];
    let slower = [line("verbs", 3.0), line("am", 6.0)];
    let worse = [line("verbs", 3.0), line("am", 9.0)];
    assert_eq!(compared(&before, &slower, "--fail-above 10").0, Some(1));
    assert_eq!(compared(&before, &slower, "--ratios --fail-above 10").0, Some(0));
    let (status, found, said) = compared(&before, &worse, "--ratios --fail-above 10");
    assert_eq!(status, Some(1), "{found}{said}");
    assert!(!found.contains("verbs over"), "{found}");
}

#[test]
fn files_that_are_no_results_are_refused_with_the_line() {
    let good = [line("am", 1.0)];
    for (bad, told) in [
        (vec![], "has no line"),
        (vec![json!({ "test": "am_lat" })], "has no layer, device and parameters"),
        (vec![json!([1])], "has no layer, device and parameters"),
    ] {
        let (status, _, error) = compared(&good, &bad, "");
        assert_eq!(status, Some(1));
        assert!(error.contains(told), "{error}");
    }
    let (_, _, error) = compared(&good, &[line("verbs", 1.0)], "");
    assert!(error.contains("no layer on a device in common"), "{error}");
    // Lines of earlier versions, as those above, have no schema.
    let of_schema = |schema: u64| {
        let mut line = line("am", 1.0);
        line["schema"] = json!(schema);
        line
    };
    assert_eq!(compared(&good, &[of_schema(1)], "").0, Some(0));
    let (status, _, error) = compared(&good, &[of_schema(2)], "");
    assert_eq!(status, Some(1));
    assert!(error.contains("has schema 2, and this doorbell"), "{error}");
    let output = doorbell("logp --compare /no/such/file /dev/null").output().expect("it runs");
    let told = said(&output);
    assert!(told.contains("reading /no/such/file"), "{told}");
}
