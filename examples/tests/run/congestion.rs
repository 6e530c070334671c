//! What losses, reordering and congestion cost connections that are kept busy, by the example
//! `congestion`.

use doorbell_kit::lab::{self, Lab};
use serde_json::Value;

use crate::run;

/// A line of what the example prints as JSON.
struct Line(Value);

impl Line {
    fn is(&self, run: &str, transport: &str) -> bool {
        self.0["run"] == run && self.0["transport"] == transport
    }

    fn share(&self, field: &str) -> f64 {
        self.0[field].as_f64().unwrap_or_else(|| panic!("no {field} in {}", self.0))
    }
}

/// What the example prints of the shortest cases of such runs.
fn lines(lab: &Lab, runs: &[&str]) -> Vec<Line> {
    let arguments: Vec<_> =
        runs.iter().chain(&["--quick", "--json"]).map(|&word| word.to_owned()).collect();
    let said = run(&lab.near, "congestion", &arguments);
    let line = |text| Line(serde_json::from_str(text).expect("a line of JSON"));
    said.lines().map(line).collect()
}

#[test]
fn many_that_send_to_one_share_its_port_and_wait_for_no_time_out() {
    lab::test(|lab| {
        let lines = lines(lab, &["incast"]);
        assert_eq!(lines.len(), 16);
        for line in lines.iter().filter(|line| line.0["transport"] == "selective") {
            assert!(line.share("goodput") > 0.85, "{}", line.0);
            assert!(line.share("slowest") > 0.5, "{}", line.0);
            assert_eq!(line.0["timeouts"], 0, "{}", line.0);
        }
        // Without control, who sends whole windows fills the buffer, and waits for what was lost.
        let back = lines.iter().filter(|line| line.is("incast", "go-back-n"));
        assert!(back.clone().all(|line| line.0["timeouts"].as_u64() > Some(0)));
        assert_eq!(back.count(), 4);
    });
}

#[test]
fn losses_cost_what_was_lost_and_reordering_costs_nothing() {
    lab::test(|lab| {
        let lines = lines(lab, &["loss", "reorder"]);
        assert_eq!(lines.len(), 20);
        for line in lines.iter().filter(|line| line.is("loss", "selective")) {
            let (loss, goodput) = (line.share("loss"), line.share("goodput"));
            // A short run begins with a small window and with drains that follow each other soon, and
            // ends with what its last losses cost.
            assert!((0.94 - 2.2 * loss..=1.0).contains(&goodput), "{}", line.0);
            assert_eq!(line.0["timeouts"], 0, "{}", line.0);
        }
        for line in lines.iter().filter(|line| line.is("reorder", "selective")) {
            assert!(line.share("goodput") > 0.94 && line.share("again") == 0.0, "{}", line.0);
        }
        // Going back costs a window for each loss, and so the more the more is lost.
        let back: Vec<_> = lines.iter().filter(|line| line.is("loss", "go-back-n")).collect();
        for of_mtu in back.chunks(4) {
            let shares: Vec<_> = of_mtu.iter().map(|line| line.share("goodput")).collect();
            assert!(shares.is_sorted_by(|more, less| more > less), "{shares:?}");
            assert!(shares[3] < 0.5, "{shares:?}");
        }
    });
}
