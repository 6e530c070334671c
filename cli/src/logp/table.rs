//! The parameters as a table.

use std::fmt::Write;

use serde_json::Value;

use super::Line;

/// The columns: a title, and the name of the value in JSON.
const COLUMNS: [(&str, &str); 6] = [
    ("o_s", "o_s_us"),
    ("o_r", "o_r_us"),
    ("L", "l_us"),
    ("g", "g_us"),
    ("RTT/2", "rtt_us"),
    ("G, ns/B", "g_big_ns_per_byte"),
];

/// A row for each line, and below each value half the width of its interval.
pub fn of(lines: &[Line]) -> String {
    let widest = lines.iter().map(|line| line.step.to_string().len()).max().unwrap_or(0);
    let mut text = format!("{:widest$}", "µs");
    for (title, _) in COLUMNS {
        // Writing to a string does not fail.
        let _ = write!(text, "{title:>16}");
    }
    text.push('\n');
    for line in lines {
        let _ = write!(text, "{:widest$}", line.step.to_string());
        for (title, name) in COLUMNS {
            let half = if title == "RTT/2" { 0.5 } else { 1.0 };
            let _ = write!(text, "{:>16}", cell(&line.json, name, half));
        }
        text.push('\n');
    }
    text
}

/// A value, and how far its interval reaches to either side, on the side where it reaches farther.
fn cell(json: &Value, name: &str, times: f64) -> String {
    let get = |suffix: &str| json[format!("{name}{suffix}")].as_f64();
    let (Some(value), Some(low), Some(high)) = (get(""), get("_low"), get("_high")) else {
        return "–".to_owned();
    };
    let reach = (value - low).max(high - value) * times;
    format!("{:.3} ± {reach:.3}", value * times)
}
