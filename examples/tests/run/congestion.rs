//! What losses, reordering and congestion cost connections that are kept busy, by the example
//! `congestion`.

use doorbell_kit::lab::{self, Lab};
use serde_json::Value;

use crate::program::Folder;
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

#[test]
fn several_routes_are_used_together_and_a_dead_one_is_left() {
    lab::test(|lab| {
        let lines = lines(lab, &["paths", "leaf-spine"]);
        let of = |run: &str, transport: &str, paths: u64| {
            let paths = |line: &&Line| line.0["paths"] == paths;
            lines.iter().filter(|line| line.is(run, transport)).filter(paths).collect::<Vec<_>>()
        };
        for (one, all) in of("paths", "selective", 1).iter().zip(of("paths", "selective", 16)) {
            assert!(all.share("goodput") > one.share("goodput") + 0.15, "{} {}", one.0, all.0);
        }
        // A round trip is 43 µs. Who has one route alone, and it is dead, has nothing to the end.
        let stalls = |paths| of("dead-spine", "selective", paths).into_iter();
        assert!(stalls(16).all(|line| line.share("stall_rtts") < 60.0));
        assert!(stalls(1).all(|line| line.share("stall_rtts") > 500.0));
        let took = |line: &Line| line.share("fct_ratio");
        let all = of("leaf-spine", "selective", 16);
        let back = of("leaf-spine", "go-back-n", 1);
        assert!(all.iter().zip(&back).all(|(all, back)| took(all) < took(back)));
        assert_eq!((all.len(), back.len()), (2, 2));
    });
}

#[test]
fn pictures_show_rates_and_the_queue() {
    lab::test(|lab| {
        let folder = Folder::new();
        let directory = folder.join("pictures");
        let said =
            run(&lab.near, "congestion", &["--svg".to_owned(), directory.display().to_string()]);
        for name in ["congestion-queue.svg", "congestion-rates.svg"] {
            let path = directory.join(name);
            assert!(said.contains(&path.display().to_string()), "{said}");
            let svg = std::fs::read_to_string(path).expect("a picture");
            assert!(svg.starts_with("<svg") && svg.contains("go-back-N"), "{name}");
        }
    });
}
