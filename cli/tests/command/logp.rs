//! `doorbell logp`, as a user runs it.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use doorbell_kit::lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{doorbell, figures, run, said};

/// Checks a line: the parameters are there, each within its interval, and make sense together.
fn check(line: &Value) {
    let get = |name: &str| line[name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"));
    for name in ["o_s_us", "o_r_us", "l_us", "g_us", "g_big_ns_per_byte", "rtt_us"] {
        let [low, value, high] = ["_low", "", "_high"].map(|end| get(&format!("{name}{end}")));
        assert!(low <= value && value <= high, "{name}: {line}");
    }
    assert!(get("o_s_us") > 0.0 && get("g_us") > 0.0 && get("rtt_us") > 0.0, "{line}");
    // A request alone is at least sent, answered, and that answer handled.
    assert!(get("rtt_us") > get("o_s_us"), "{line}");
    for curve in ["bursts", "steady", "long"] {
        let points = line[curve].as_array().unwrap_or_else(|| panic!("{curve}: {line}"));
        assert!(points.iter().all(|point| point["us"].as_f64() > Some(0.0)), "{curve}: {line}");
        assert!(points.len() >= 4, "{curve}: {line}");
    }
}

#[test]
fn each_layer_and_each_carrier_of_split_c_has_a_line_over_shared_memory() {
    let output = run("logp --device shm --quick --json");
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8(output.stdout).expect("text");
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<_> =
        lines.iter().map(|line| (line["layer"].clone(), line["carrier"].clone())).collect();
    let expected = [
        ("verbs".into(), Value::Null),
        ("am".into(), Value::Null),
        ("splitc".into(), "mapped".into()),
        ("splitc".into(), "one-sided".into()),
        ("splitc".into(), "messages".into()),
    ];
    assert_eq!(kinds, expected);
    lines.iter().for_each(check);
}

#[test]
fn each_layer_is_measured_over_sockets_and_raw_ethernet() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            for layer in ["verbs", "am", "splitc"] {
                let line = figures(&format!("logp_{layer} --pair --device {device} --iters 2"));
                check(&line);
                assert_eq!((&line["layer"], &line["device"]), (&layer.into(), &device.into()));
                assert_eq!(line["rounds"], 2);
            }
        }
    });
}

#[test]
fn the_table_has_a_row_for_each_measurement_and_the_published_ones_below() {
    let output = run("logp --device shm --layer am --quick");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let row = text.lines().find(|line| line.starts_with("am over shm")).expect("a row");
    assert_eq!(row.matches('±').count(), 6, "{row}");
    assert!(
        text.contains("AMVIAv3 (LANai 7)        3.1     2.9    29.6    30.0    35.6"),
        "{text}"
    );
}

#[test]
fn what_was_measured_is_printed_when_somebody_interrupts() {
    let mut command = doorbell("logp --device shm --layer am --layer verbs --json");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let first = lines.next().expect("a line").expect("text");
    let pid = Pid::from_raw(child.id().try_into().expect("a process number"));
    kill(pid, Signal::SIGINT).expect("it is a child");
    assert_eq!(lines.count(), 0);
    let output = child.wait_with_output().expect("it is a child");
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("interrupted after"), "{}", said(&output));
    check(&serde_json::from_str(&first).expect("JSON"));
}

#[test]
fn a_device_that_there_is_not_is_refused_with_those_that_there_are() {
    let output = run("logp --device myrinet");
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("[possible values: shm, udp, packet, packet-v2]"));
}
