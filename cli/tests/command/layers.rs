//! `doorbell perf layers`, as a user runs it.

use doorbell_kit::lab;
use serde_json::Value;

use super::{figures, run, said};

/// Checks the rows of all layers: each has a latency and a rate, and what it is beside the layer
/// below agrees with that layer's row.
fn check(found: &Value, device: &str) {
    assert_eq!((&found["test"], &found["device"]), (&"layers".into(), &device.into()), "{found}");
    let rows = found["rows"].as_array().expect("a list");
    assert_eq!(rows.len(), 7, "{found}");
    for (place, row) in rows.iter().enumerate() {
        let number = |row: &Value, name: &str| row[name].as_f64().expect("a number");
        let (latency, rate) = (number(row, "latency_us"), number(row, "msgs_per_s"));
        assert!(latency > 0.0 && rate > 0.0, "{row}");
        if place == 0 {
            assert!(row["below"].is_null() && row["added_us"].is_null(), "{row}");
            continue;
        }
        let below = rows[..place].iter().find(|other| other["floor"] == row["below"]);
        let below = below.unwrap_or_else(|| panic!("the layer below is measured before: {row}"));
        let added = latency - number(below, "latency_us");
        assert!((number(row, "added_us") - added).abs() < 1e-9, "{row}");
        let share = rate / number(below, "msgs_per_s");
        assert!((number(row, "rate_share") - share).abs() < 1e-9, "{row}");
    }
    assert_eq!(rows[6]["rate_test"], "rpc_bw --in-flight 64", "{found}");
}

#[test]
fn every_layer_is_measured_over_shared_memory_without_more_arguments() {
    check(&figures("layers --seconds 0.02"), "shm");
}

#[test]
fn every_layer_is_measured_over_sockets_and_raw_ethernet() {
    lab::test(|_| {
        for device in ["udp", "packet", "packet-v2"] {
            check(&figures(&format!("layers --device {device} --seconds 0.02")), device);
        }
    });
}

#[test]
fn the_table_has_a_line_for_each_layer() {
    let output = run("perf layers --pair --seconds 0.01");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let floors =
        ["frames", "sends", "Active Messages", "tagged messages", "Split-C", "typed calls", "RPC"];
    for floor in floors {
        assert_eq!(text.lines().filter(|line| line.starts_with(floor)).count(), 1, "{text}");
    }
}

#[test]
fn what_is_not_for_all_layers_is_refused() {
    for (arguments, told) in [
        ("layers --size 64", "--size is not for layers"),
        ("layers --credits 3", "--credits is not for layers"),
        ("layers --iters 3", "layers is for a time: --seconds, and not --iters"),
        ("layers --connect 127.0.0.1:9", "runs both ends of each test on this machine"),
        ("layers --device shm:job", "one of shm, udp, packet, packet-v2"),
        ("layers --in-flight 8", "--in-flight is for rpc_bw and call_bw, and not for layers"),
    ] {
        let output = run(&format!("perf {arguments}"));
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", said(&output));
        assert!(said(&output).contains(told), "{arguments}: {}", said(&output));
    }
}
