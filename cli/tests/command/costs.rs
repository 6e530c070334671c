//! `doorbell perf am_costs` and the breakdowns of other layers, as a user runs them.

use doorbell_kit::lab;
use serde_json::Value;

use super::{figures, run, said};

const PARTS: [&str; 5] = ["base", "notification", "flow_control", "semantics", "handlers"];

/// The lower end of an interval, the value, and the upper end.
fn interval(line: &Value, name: &str) -> [f64; 3] {
    ["_low", "", "_high"].map(|end| {
        let name = format!("{name}_ns{end}");
        line[&name].as_f64().unwrap_or_else(|| panic!("{name}: {line}"))
    })
}

/// Checks a line of five rounds: everything is there, each value within its interval, and the parts
/// add up to the total.
fn check(line: &Value, test: &str, device: &str, carrier: Value) {
    assert_eq!((&line["test"], &line["device"]), (&test.into(), &device.into()), "{line}");
    assert_eq!((&line["carrier"], &line["rounds"]), (&carrier, &5.into()), "{line}");
    assert!(line["exchanges"].as_u64() > Some(0), "{line}");
    let others = ["total", "subtracted", "unwatched_total", "uncounted_total"];
    for name in PARTS.into_iter().chain(others) {
        let [low, value, high] = interval(line, name);
        assert!(low <= value && value <= high, "{name}: {line}");
    }
    assert!(interval(line, "uncounted_total")[0] > 0.0, "{line}");
    // Of five rounds an interval is from the least to the greatest, and in each round the parts add
    // up exactly, but for what floating point loses.
    let parts = PARTS.map(|part| interval(line, part));
    let [low, high] = [0, 2].map(|end| parts.iter().map(|part| part[end]).sum::<f64>());
    let total = interval(line, "total")[1];
    assert!(low - 1e-6 <= total && total <= high + 1e-6, "{line}");
}

#[test]
fn a_request_and_its_reply_are_broken_down_over_shared_memory_without_more_arguments() {
    check(&figures("am_costs --iters 5"), "am_costs", "shm", Value::Null);
}

#[test]
fn a_get_is_broken_down_by_messages_or_as_a_one_sided_read() {
    let found = figures("splitc_costs --iters 5");
    check(&found, "splitc_costs", "shm", "messages".into());
    let found = figures("splitc_costs --iters 5 --carrier one-sided");
    check(&found, "splitc_costs", "shm", "one-sided".into());
}

#[test]
fn a_tagged_message_and_a_call_are_broken_down_and_explained() {
    for (test, what) in [("tag_costs", "there and back"), ("rpc_costs", "a call")] {
        check(&figures(&format!("{test} --iters 5")), test, "shm", Value::Null);
        let output = run(&format!("perf {test} --iters 5"));
        let text = String::from_utf8(output.stdout).expect("text");
        for part in [what, "semantics", "handlers where messages come"] {
            assert!(text.contains(part), "{part} is not in: {text}");
        }
        assert!(!text.contains("Published"), "{text}");
    }
}

#[test]
fn all_are_broken_down_over_sockets_and_raw_ethernet() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            for test in ["am_costs", "tag_costs", "rpc_costs"] {
                let found = figures(&format!("{test} --iters 5 --device {device}"));
                check(&found, test, device, Value::Null);
            }
            let found = figures(&format!("splitc_costs --iters 5 --device {device}"));
            check(&found, "splitc_costs", device, "messages".into());
        }
    });
}

#[test]
fn the_table_of_costs_has_the_published_shares_beside_the_measured_ones() {
    for (test, published) in [
        ("am_costs", ["32.5", "44.2", "14.4", "8.9"]),
        ("splitc_costs", ["36.1", "46.9", "11.6", "5.4"]),
    ] {
        let output = run(&format!("perf {test} --iters 5"));
        assert!(output.status.success(), "{}", said(&output));
        let text = String::from_utf8(output.stdout).expect("text");
        let rows = ["verbs and the NIC", "event notification", "flow control", "semantics"];
        for (row, published) in rows.into_iter().zip(published) {
            let line = text.lines().find(|line| line.starts_with(row)).expect("a row");
            assert!(line.ends_with(&format!(" {published}")), "{text}");
        }
    }
}

#[test]
fn a_breakdown_of_costs_refuses_another_end() {
    for other in ["--pair", "--listen 127.0.0.1:4790", "--connect 127.0.0.1:4790"] {
        for test in ["am_costs", "splitc_costs", "tag_costs", "rpc_costs"] {
            let output = run(&format!("perf {test} {other}"));
            assert_eq!(output.status.code(), Some(2), "{other}: {}", said(&output));
            let words = said(&output);
            for part in [test, "one thread", "--pair, --listen and --connect"] {
                assert!(words.contains(part), "{part} is not in: {words}");
            }
        }
    }
}

#[test]
fn a_breakdown_of_costs_refuses_what_it_has_no_use_for() {
    for (arguments, why) in [
        ("am_costs --device shm:job", "one of shm, udp, packet, packet-v2"),
        ("am_costs --carrier messages", "--carrier is of Split-C"),
        ("am_costs --size 64", "--size"),
        ("splitc_costs --carrier mapped", "messages, the default, or one-sided"),
        ("splitc_costs --dedicated", "--dedicated"),
    ] {
        let output = run(&format!("perf {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", said(&output));
        assert!(said(&output).contains(why), "{arguments}: {}", said(&output));
    }
}
