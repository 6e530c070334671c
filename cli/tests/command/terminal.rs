//! Texts on a terminal: colours, and lines that fit.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use anstream::adapter::strip_str;
use doorbell_kit::lab;
use serde_json::json;
use tempfile::NamedTempFile;

use super::{assert_fits, doorbell, on_terminal, run, said};

const ESCAPE: char = '\u{1b}';

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command on a terminal of 80 columns that knows colours, with some more variables.
fn on_colours(arguments: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = doorbell(arguments);
    command.env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
    on_terminal(80, command)
}

#[test]
fn the_doctor_has_colours_on_a_terminal_alone_unless_somebody_forces_or_forbids_them() {
    let piped = doorbell("doctor").env_remove("CLICOLOR_FORCE").output().expect("it runs");
    assert!(!printed(&piped).contains(ESCAPE), "{}", printed(&piped));
    let forced = doorbell("doctor").env("CLICOLOR_FORCE", "1").output().expect("it runs");
    let green = "  \u{1b}[32m+\u{1b}[0m shm:";
    assert!(printed(&forced).contains(green), "{}", printed(&forced));
    let seen = printed(&on_colours("doctor", &[]));
    assert!(seen.contains(green) && seen.starts_with("\u{1b}[1mThis machine:"), "{seen}");
    let plain = printed(&on_colours("doctor", &[("NO_COLOR", "1")]));
    assert!(plain.starts_with("This machine:") && !plain.contains(ESCAPE), "{plain}");
}

#[test]
fn an_error_has_a_red_prefix_on_a_terminal_alone() {
    let wrong = "perf write_lat";
    let piped = doorbell(wrong).env_remove("CLICOLOR_FORCE").output().expect("it runs");
    assert!(said(&piped).starts_with("doorbell: write_lat is measured"), "{}", said(&piped));
    let forced = doorbell(wrong).env("CLICOLOR_FORCE", "1").output().expect("it runs");
    let red = "\u{1b}[1m\u{1b}[31mdoorbell:\u{1b}[0m write_lat is measured";
    assert!(said(&forced).starts_with(red), "{:?}", said(&forced));
}

/// Errors of processes that measure were told with the prefix of those.
#[test]
fn with_colours_forced_the_reason_why_a_measurement_has_failed_has_no_prefix_of_its_own() {
    // A cable is laid by this program `ip`, which fails.
    let place = tempfile::tempdir().expect("a temporary directory");
    let program = place.path().join("ip");
    fs::write(&program, "#!/bin/sh\nexit 1\n").expect("room for a program");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("it is ours");
    let mut command = doorbell("logp --device packet --layer verbs --quick --json");
    command.env("PATH", place.path()).env("CLICOLOR_FORCE", "1");
    let output = command.output().expect("the command runs");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let told = strip_str(&said(&output)).to_string();
    let (_, why) = told.split_once("doorbell: nothing was measured\n").expect("an error");
    assert!(why.starts_with("verbs over packet: ") && !why.contains("doorbell:"), "{told}");
}

#[test]
fn help_and_lists_fit_a_terminal_of_80_columns() {
    let commands = ["", "run ", "logp ", "paper ", "doctor ", "perf ", "pingpong "];
    for arguments in commands.map(|command| format!("{command}--help")) {
        let text = printed(&on_colours(&arguments, &[]));
        assert!(text.contains("Usage"), "{text}");
        assert_fits(&text, &arguments);
        // Where the examples are as they were written, piped help has the same lines.
        let piped = printed(&run(&arguments));
        for example in piped.lines().filter(|line| line.starts_with("  doorbell ")) {
            let plain = strip_str(&text).to_string();
            assert!(plain.lines().any(|line| line == example), "{example}: {text}");
        }
    }
    for arguments in ["perf --list", "paper"] {
        assert_fits(&printed(&on_colours(arguments, &[])), arguments);
    }
}

#[test]
fn what_the_doctor_and_perf_and_a_comparison_print_fits_a_terminal_of_80_columns() {
    let mut file = NamedTempFile::new().expect("a temporary file");
    let line = json!({
        "layer": "splitc", "carrier": "one-sided", "device": "packet-v2",
        "o_s_us": 1000.0, "o_s_us_low": 999.0, "o_s_us_high": 1001.0,
        "l_us": -1000.0, "l_us_low": -1001.0, "l_us_high": 1.0,
    });
    writeln!(file, "{line}").expect("room for a line");
    let place = file.path().display();
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        for arguments in [
            "doctor",
            "perf send_lat --pair --device packet-v2 --iters 500 --connections 3",
            "perf am_mixed_bw --pair --device packet-v2 --iters 500 --connections 100",
            "perf idle_nic_cpu --pair --seconds 0.05",
            "perf logp_splitc --pair --device packet-v2 --iters 2",
            "perf group_pingpong --pair --device tcp --seconds 0.05",
            "perf collectives --pair --device packet-v2 --seconds 0.05",
            "perf receive_cpu --pair --device packet-v2 --seconds 0.05",
            "perf layers --device packet-v2 --seconds 0.01",
            &format!("logp --compare {place} {place}"),
        ] {
            let output = on_colours(arguments, &[]);
            assert!(output.status.success(), "{arguments}: {}", said(&output));
            assert_fits(&printed(&output), arguments);
        }
    });
}

#[test]
fn perf_lists_each_test_on_a_line_with_what_it_measures() {
    let list = printed(&run("perf --list"));
    let names: Vec<_> =
        list.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  ")).collect();
    let different: std::collections::BTreeSet<_> = names.iter().map(|(name, _)| name).collect();
    assert!(names.len() > 50 && different.len() == names.len(), "{list}");
    assert!(names.iter().all(|(_, what)| !what.trim().is_empty()), "{list}");
    let heads = ["Devices", "Verbs", "Active Messages", "Split-C", "Messages", "Byte streams"];
    for head in heads.into_iter().chain(["RPC", "Kernel sockets", "Layers", "Costs"]) {
        assert_eq!(list.lines().filter(|line| line.starts_with(head)).count(), 1, "{head}: {list}");
    }
    let help = printed(&run("perf --help"));
    assert!(help.contains(list.trim_end()), "{help}");
    let with_more = run("perf --list --pair");
    assert_eq!(with_more.status.code(), Some(2), "{}", said(&with_more));
}
