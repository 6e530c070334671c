//! The bar on a terminal that shows how far a test is.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use super::{doorbell, said};

const COLUMNS: u16 = 80;

/// Runs a test whose standard error is a terminal. What is written there, and what the test prints.
fn on_a_terminal(arguments: &str) -> (String, String) {
    let (seen, had) = doorbell_kit::terminal(COLUMNS).expect("a terminal");
    let mut command = doorbell(&format!("perf {arguments}"));
    command.env("TERM", "xterm").stdout(Stdio::piped()).stderr(had);
    let child = command.spawn().expect("the command runs");
    // It has the program's side, too.
    drop(command);
    let (mut written, mut seen) = (Vec::new(), File::from(seen));
    // With an error once nobody has the other side.
    let end = seen.read_to_end(&mut written);
    assert!(end.is_err(), "a terminal ends otherwise: {end:?}");
    let output = child.wait_with_output().expect("it ends");
    let written = String::from_utf8_lossy(&written).into_owned();
    assert!(output.status.success(), "{}{written:?}", said(&output));
    (written, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A bar as it was drawn: of what, and at how many per cent.
fn drawn(bar: &str) -> (&str, usize) {
    let words: Vec<_> = bar.split(' ').collect();
    let [what, blocks, percent, "%"] = words[..] else { panic!("{bar:?}") };
    assert_eq!(bar.chars().count(), usize::from(COLUMNS), "as wide as the terminal: {bar:?}");
    let percent = percent.parse().expect("a number");
    let (done, all) = (blocks.chars().filter(|it| *it == '█').count(), blocks.chars().count());
    // Both are rounded: they differ by less than two blocks.
    assert!((done * 100).abs_diff(percent * all) < 200, "{done} of {all} blocks: {bar:?}");
    (what, percent)
}

/// Returns each bar that a test draws, with its positions. All bars must rise, and none be left.
fn bars(arguments: &str) -> Vec<(String, Vec<usize>)> {
    let (written, printed) = on_a_terminal(arguments);
    let mut all: Vec<_> = written.split("\r\u{1b}[2K").collect();
    assert_eq!(all.pop(), Some(""), "it is cleared at the end: {written:?}");
    let mut bars: Vec<(String, Vec<usize>)> = Vec::new();
    for (what, percent) in all.into_iter().map(drawn) {
        match bars.last_mut() {
            Some((last, percents)) if last == what => percents.push(percent),
            _ => bars.push((what.to_owned(), vec![percent])),
        }
    }
    for (what, percents) in &bars {
        assert!(percents.is_sorted() && percents[0] == 0, "{what}: {percents:?}");
        assert!(percents.last() > Some(&0), "{what}: {percents:?}");
    }
    assert!(printed.contains("all checked"), "{printed}");
    bars
}

#[test]
fn a_bar_on_a_terminal_shows_how_much_is_done_and_goes() {
    for test in ["write_lat", "frame_lat", "am_lat", "am_bw", "put_lat", "put_bw", "histogram"] {
        let bars = bars(&format!("{test} --pair --device shm --iters 3000"));
        let [(what, percents)] = &bars[..] else { panic!("{test}: {bars:?}") };
        // Some tell only of every so many, and what is told at once after much else is not drawn.
        assert!(what == test && percents.last() >= Some(&80), "{bars:?}");
    }
}

#[test]
fn a_bar_shows_how_much_of_the_time_has_passed() {
    let bars = bars("write_lat --pair --device shm --seconds 0.3");
    let [(what, _)] = &bars[..] else { panic!("{bars:?}") };
    assert_eq!(what, "write_lat");
}

#[test]
fn connections_have_a_bar_before_that_of_the_test() {
    let bars = bars("write_lat --pair --device shm --iters 3000 --connections 20");
    let of: Vec<_> = bars.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(of, ["connections", "write_lat"], "{bars:?}");
}
