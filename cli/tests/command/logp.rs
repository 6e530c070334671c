//! `doorbell logp`, as a user runs it.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use doorbell_kit::browser::{Browser, Page};
use doorbell_kit::lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{doorbell, figures, on_terminal, run, said};

/// Checks that a line has all parameters of LogP, each within its interval, and that they make
/// sense together.
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
    let place = tempfile::tempdir().expect("a temporary directory");
    let output = doorbell("logp --device shm --layer am --quick")
        .current_dir(&place)
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    // The intervals are beside the numbers or, where there is no room for that, below. A dash is a
    // number that a busy machine did not show: a rate in bulk whose interval has no upper end.
    let rows: Vec<_> = text.lines().collect();
    let row = rows.iter().position(|line| line.starts_with("Active Messages over shm"));
    let row = row.unwrap_or_else(|| panic!("{text}"));
    let below = rows[row + 1].strip_prefix(' ').unwrap_or_default();
    let intervals = [rows[row], below].map(|line| line.matches(['±', '…']).count());
    let shown = 6 - rows[row].matches('–').count();
    assert!(shown >= 5, "{text}");
    assert!(intervals == [shown, 0] || intervals == [0, shown], "{intervals:?}: {text}");
    let published = text.lines().find(|line| line.starts_with("AMVIAv3, LANai 7 (2001)"));
    let published = published.unwrap_or_else(|| panic!("{text}"));
    for value in ["3.1", "2.9", "29.6", "30", "35.6"] {
        assert!(published.contains(&format!(" {value} [1]")), "{value}: {published}");
    }
    assert!(text.contains("[1] A. Begel"), "{text}");
    let page = fs::read_to_string(place.path().join("doorbell-logp.html"));
    assert!(page.expect("a report").contains(">Active Messages</th>"));
}

#[test]
fn the_report_its_figures_and_its_numbers_are_written_where_they_are_wanted() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let [page, figures] = ["page.html", "figures"].map(|name| place.path().join(name));
    let (page, figures) = (page.display(), figures.display());
    let output = run(&format!(
        "logp --device shm --layer verbs --quick --csv --report {page} --svg {figures}"
    ));
    assert!(output.status.success(), "{}", said(&output));
    let table = String::from_utf8(output.stdout).expect("text");
    let head = "block,group,row,row_unit,column,value,low,high,unit,published\n";
    assert!(table.starts_with(head), "{table}");
    assert!(table.lines().any(|line| line.starts_with("parameters,shm,verbs,,o_s,")));
    let html = fs::read_to_string(page.to_string()).expect("a report");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains(">shm</span></th>"));
    let names = fs::read_dir(figures.to_string()).expect("a directory");
    let mut names: Vec<_> =
        names.map(|file| file.expect("a file").file_name().into_string().expect("text")).collect();
    names.sort();
    // A part of less than nothing, as a busy machine shows it, can't be drawn.
    let parameter = |name: &str| {
        let row = table.lines().find_map(|line| {
            line.strip_prefix(&format!("parameters,shm,verbs,,{name},")).map(str::to_owned)
        });
        let row = row.unwrap_or_else(|| panic!("{name}: {table}"));
        row.split(',').next().and_then(|value| value.parse::<f64>().ok())
    };
    let parts = ["o_s", "o_r", "RTT/2"].map(parameter);
    let is_drawable = parts.into_iter().all(|part| part.is_some_and(|part| part >= 0.0));
    let mut expected =
        vec!["bulk.svg", "bursts.svg", "gaps.svg", "one-way.svg", "signature-shm.svg"];
    expected.extend(is_drawable.then_some("parts.svg"));
    expected.sort_unstable();
    assert_eq!(names, expected, "{table}");
    let one_way = fs::read_to_string(place.path().join("figures/one-way.svg")).expect("a figure");
    assert!(one_way.contains("prefers-color-scheme:dark"), "{one_way}");
    assert!(one_way.contains(">One way takes "), "the title is in the picture: {one_way}");
    for elsewhere in ["href", "url(", "@import"] {
        assert!(!one_way.contains(elsewhere), "{elsewhere}: {one_way}");
    }
    let left = fs::read_dir(&place).expect("a directory").count();
    assert_eq!(left, 2, "no file of the writing is left");
}

#[test]
fn a_terminal_shows_the_curve_of_each_layer_and_no_line_is_wider_than_the_terminal() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for columns in [60, 80, 125] {
        let mut command = doorbell("logp --device shm --quick");
        command.current_dir(&place).env("NO_COLOR", "1");
        let output = on_terminal(columns, command);
        assert!(output.status.success(), "{}", said(&output));
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(text.contains("What the method sees\n"), "{text}");
        for words in ["a  Δ = 0", "b  Δ = 2 g"] {
            assert_eq!(text.matches(words).count(), 3, "one of each layer: {text}");
        }
        assert_eq!(text.matches("-  o_s ").count(), 3, "{text}");
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(columns.into()), "{columns}, {widest:?}: {text}");
        let (_, summary) = text.split_once("\n\nSummary: ").expect("the summary is at the end");
        // With a line on where the report is, and the shell's prompt, on a screen of 24.
        assert!(columns < 80 || summary.lines().count() <= 22, "{summary}");
        for row in ["shm       verbs ", "shm       Active Messages ", "shm       Split-C, mapped "]
        {
            assert_eq!(summary.matches(row).count(), 1, "{row}: {summary}");
        }
        let meaning = summary.replace('\n', " ");
        assert!(meaning.contains("A message of verbs takes "), "{summary}");
        assert!(meaning.contains("Active Messages add "), "{summary}");
    }
}

/// The figures of a report, in order.
const FIGURES: [&str; 6] = ["one-way", "parts", "gaps", "signature-shm", "bursts", "bulk"];

#[test]
fn the_report_is_whole_in_a_browser_and_begins_with_what_was_found() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("logp-report");
    let Some(browser) = Browser::new(folder) else { return };
    let place = tempfile::tempdir().expect("a temporary directory");
    let page = place.path().join("page.html");
    let output = run(&format!("logp --quick --device shm --report {}", page.display()));
    assert!(output.status.success(), "{}", said(&output));
    let html = fs::read_to_string(page).expect("a report");
    let finding = "<p class=\"finding\">A message between two processes on this machine takes ";
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}: {html}"));
    assert!(at(finding) < at("id=\"one-way\"") && at("id=\"one-way\"") < at("<main>"));
    // What was not measured is not there, and bulk is a rate.
    for absent in ["udp", "no data", "ns/B", "<details"] {
        let shown = html.split("id=\"report-json\"").next().unwrap_or_default();
        assert!(!shown.contains(absent), "{absent}: {shown}");
    }
    let page = Page { html: &html, figures: &FIGURES, tables: 1, roomy: 1300 };
    browser.assert_whole(&page, &[(360, true), (800, false), (1300, false)]);
}

#[test]
fn a_report_of_several_devices_draws_six_figures_or_all_of_them() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let drawn = |more: &str| {
        let page = place.path().join("page.html");
        let output = run(&format!(
            "logp --quick --device shm --device udp --layer am --csv --report {}{more}",
            page.display()
        ));
        assert!(output.status.success(), "{}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("\nsignature-udp,"));
        let html = fs::read_to_string(page).expect("a report");
        let names = html.split("<figure class=\"drawing\" id=\"").skip(1);
        let names = names.filter_map(|rest| rest.split('"').next().map(str::to_owned));
        names.collect::<Vec<_>>()
    };
    assert_eq!(drawn(""), FIGURES);
    assert_eq!(drawn(" --all-figures"), [&FIGURES[..], &["signature-udp"]].concat());
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_anything_is_measured() {
    let output = run("logp --device shm --layer am --report /proc/no/such/place.html");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("writing the report to /proc/no/such/place.html"));
    assert!(output.stdout.is_empty(), "nothing was measured");
}

#[test]
fn a_full_disk_is_told_and_is_a_failure() {
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let mut command = doorbell("logp --device shm --layer verbs --quick --json");
    let output = command.stdout(full()).output().expect("the command runs");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("printing what was found"), "{}", said(&output));
    assert!(said(&output).contains("No space left on device"), "{}", said(&output));
    assert!(!said(&output).contains("panicked"), "{}", said(&output));
}

/// Whether a process has a child now that measures a layer, or something else that its arguments
/// name.
fn measures(parent: u32, layer: &str) -> bool {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    let mut commands = children
        .split_whitespace()
        .map(|child| fs::read_to_string(format!("/proc/{child}/cmdline")).unwrap_or_default());
    commands.any(|command| command.contains(layer))
}

/// Starts a command, and interrupts it as soon as it measures what `layer` names. Returns how it
/// ends: by the status of a part.
pub fn interrupted_when(mut command: Command, layer: &str) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    while !measures(child.id(), layer) {
        assert!(child.try_wait().expect("it is a child").is_none(), "it has ended by itself");
        thread::sleep(Duration::from_millis(1));
    }
    let pid = Pid::from_raw(child.id().try_into().expect("a process number"));
    kill(pid, Signal::SIGINT).expect("it is a child");
    let output = child.wait_with_output().expect("it is a child");
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    output
}

#[test]
fn what_was_measured_is_printed_when_somebody_interrupts() {
    let command = doorbell("logp --device shm --layer am --layer verbs --json");
    // Active Messages have been measured when verbs are.
    let output = interrupted_when(command, "logp_verbs");
    assert!(said(&output).contains("interrupted after 1 of 16 runs"), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    let line: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    check(&line);
    assert_eq!(line["layer"], "am");
}

/// The file beside the report's place, which becomes the report, stayed there.
#[test]
fn a_signal_leaves_no_half_written_report_behind() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let place = tempfile::tempdir().expect("a temporary directory");
        let page = place.path().join("page.html");
        let files = || fs::read_dir(&place).expect("a directory").count();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let arguments = format!("logp --connect {address} --report {}", page.display());
        let mut command = doorbell(&arguments);
        let child = command.stderr(Stdio::piped()).spawn().expect("the command runs");
        // Never answered: the command waits, and its report is begun.
        let _silent = listener.accept().expect("the command connects");
        assert_eq!(files(), 1);
        let pid = Pid::from_raw(child.id().try_into().expect("a process number"));
        kill(pid, signal).expect("it is a child");
        let output = child.wait_with_output().expect("it is a child");
        assert_eq!(files(), 0, "{}", said(&output));
        assert_eq!(output.status.signal(), Some(signal as i32), "{}", said(&output));
        assert!(said(&output).contains("while waiting for the other end"), "{}", said(&output));
    }
}

#[test]
fn a_device_that_there_is_not_or_that_names_no_interface_is_refused() {
    for (arguments, told) in [
        ("--device myrinet", "the devices are shm, udp, packet, packet-v2"),
        ("--device packet:eth0", "on one machine the devices are shm, udp, packet, packet-v2"),
        ("--device packet --connect 127.0.0.1:1", "name the interface, too, as in packet:eth0"),
    ] {
        let output = run(&format!("logp {arguments}"));
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains(told), "{arguments}: {}", said(&output));
    }
}
