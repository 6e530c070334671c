//! The command, as a user runs it.

mod active_messages;
mod byte_streams;
#[cfg(feature = "costs")]
mod costs;
mod json;
mod launchers;
mod layers;
mod logp;
mod logp_compare;
mod logp_machines;
mod logs;
mod meter;
mod ours;
mod paper;
mod pingpong;
mod rpc;
mod shell;
#[cfg(feature = "costs")]
mod spans;
mod split_c;
mod streams;
mod tags;
mod terminal;
mod usage;
mod verbs;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Output, Stdio};

use doorbell_kit::{effort, lab};
use serde_json::Value;

fn doorbell(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_doorbell"));
    command.args(arguments.split(' '));
    command
}

fn run(arguments: &str) -> Output {
    doorbell(arguments).output().expect("the command runs")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command whose standard output is a terminal with a number of columns. Returns what is
/// written to the terminal, and how the command ends.
fn on_terminal(columns: u16, mut command: Command) -> Output {
    let (seen, had) = doorbell_kit::terminal(columns).expect("a terminal");
    let child = command.stdout(had).stderr(Stdio::piped()).spawn().expect("the command runs");
    // Otherwise this process would have the terminal, too, and reading would never end.
    drop(command);
    let mut text = Vec::new();
    // A terminal that nobody has any more ends with an error.
    let _ = File::from(seen).read_to_end(&mut text);
    let output = child.wait_with_output().expect("it is a child");
    let text = String::from_utf8(text).expect("text").replace('\r', "");
    Output { stdout: text.into_bytes(), ..output }
}

/// Checks that no line of a text is wider than a terminal of 80 columns. Colours take no room.
fn assert_fits(text: &str, what: &str) {
    let plain = anstream::adapter::strip_str(text).to_string();
    for line in plain.lines() {
        assert!(line.chars().count() <= 80, "{what}: {line}\n{plain}");
    }
}

/// Runs a test, which must succeed, and returns its figures.
fn figures(arguments: &str) -> Value {
    let output = run(&format!("perf {arguments} --json"));
    assert!(output.status.success(), "{arguments}: {}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert!(found["profile"].is_string(), "figures name the profile they were built by: {found}");
    assert_eq!(found["schema"], 1, "{found}");
    found
}

/// Checks what the documentation promises of a line.
fn check(found: &Value, test: &str, size: u64) {
    assert_eq!((&found["test"], &found["size"]), (&test.into(), &size.into()), "{found}");
    let stream = test.ends_with("_bw") || ["histogram", "gather"].contains(&test);
    for (key, there) in
        [("p50_us", !stream), ("p99_us", !stream), ("msgs_per_s", stream), ("gbytes_per_s", stream)]
    {
        assert_eq!(found[key].is_f64(), there, "{key}: {found}");
        assert_eq!(found[key].is_null(), !there, "{key}: {found}");
    }
    let of_the_kernel = ["tcp_", "udp_"].iter().any(|kernel| test.starts_with(kernel));
    let device = of_the_kernel || found["device"].is_string();
    assert!(device && found["iters"].as_u64() > Some(0), "{found}");
}

#[test]
fn every_test_measures_over_every_device_in_a_pair() {
    lab::test(|_| {
        for device in ["packet", "packet-v2", "shm", "udp"] {
            let shapes: &[_] = effort(
                &[("frame_lat", 0), ("frame_bw", 70_000)],
                &[("frame_lat", 0), ("frame_lat", 9000), ("frame_bw", 1), ("frame_bw", 70_000)],
            );
            for &(test, size) in shapes {
                let found =
                    figures(&format!("{test} --pair --device {device} --size {size} --iters 500"));
                check(&found, test, size);
                assert_eq!((&found["device"], &found["iters"]), (&device.into(), &500.into()));
            }
        }
        for device in ["packet", "packet-v2"] {
            let found =
                figures(&format!("frame_lat --pair --device {device} --others 3 --iters 500"));
            check(&found, "frame_lat", 16);
        }
        for test in ["tcp_lat", "tcp_bw", "udp_lat", "udp_bw"] {
            for &size in effort::<&[u64]>(&[5000], &[1, 5000]) {
                let found = figures(&format!("{test} --pair --size {size} --iters 500"));
                check(&found, test, size);
            }
        }
    });
}

#[test]
fn without_offload_and_with_a_small_mtu_everything_arrives_too() {
    lab::test(|_| {
        for device in ["packet-v2", "udp"] {
            for how in ["--no-offload", "--mtu 1500", "--mtu 1500 --no-offload"] {
                let found =
                    figures(&format!("frame_bw --pair --device {device} --iters 500 {how}"));
                check(&found, "frame_bw", 4096);
            }
        }
    });
}

#[test]
fn sleeping_is_measured() {
    lab::test(|_| {
        let wake = figures("wake_lat --pair --iters 50");
        assert!(wake["p50_us"].is_f64(), "{wake}");
        let idle = figures("idle_cpu --pair --seconds 0.2");
        assert!(idle["cpu_share"].is_f64(), "{idle}");
        let idle = figures("idle_nic_cpu --pair --seconds 0.2");
        assert!(idle["cpu_share"].is_f64(), "{idle}");
        // Fails if a frame woke the thread that sleeps.
        check(&figures("bystander_lat --pair --iters 500"), "bystander_lat", 16);
    });
}

#[test]
fn two_ends_meet_by_an_address() {
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        // The port is free when the listener is closed, and nobody else is in this namespace.
        let port = TcpListener::bind((cable.near.ipv4, 0)).and_then(|it| it.local_addr());
        let address = port.expect("a port").to_string();
        let arguments = "perf frame_lat --iters 100 --json --device packet:";
        let mut near = doorbell(&format!("{arguments}a0 --listen {address}"));
        let mut near = near.stdout(Stdio::piped()).spawn().expect("the command runs");
        await_listener(&near, &address);
        let mut far = lab.far.command(env!("CARGO_BIN_EXE_doorbell"));
        far.args(format!("{arguments}b0 --connect {address}").split(' '));
        let far = far.output().expect("the command runs");
        assert!(far.status.success(), "{}", said(&far));
        assert!(near.wait().expect("it ends").success());
        check(&serde_json::from_slice(&far.stdout).expect("JSON"), "frame_lat", 16);
        let mut printed = String::new();
        near.stdout.take().expect("piped").read_to_string(&mut printed).expect("text");
        assert_eq!(printed, "", "who leads tells");
    });
}

/// Waits until a process listens, as the system's table of this namespace tells.
fn await_listener(process: &Child, address: &str) {
    let port: u16 = address.rsplit(':').next().and_then(|it| it.parse().ok()).expect("a port");
    let wanted = format!(":{port:04X} 00000000:0000 0A");
    let table = format!("/proc/{}/net/tcp", process.id());
    while !std::fs::read_to_string(&table).expect("the process runs").contains(&wanted) {
        std::thread::yield_now();
    }
}

/// The error asked for `--connect` alone, and did not mention that both ends can run here.
#[test]
fn a_test_without_an_other_end_names_the_three_ways_to_have_one() {
    for test in ["write_lat", "am_lat", "tcp_bw"] {
        let output = run(&format!("perf {test}"));
        assert_eq!(output.status.code(), Some(2));
        let words = said(&output);
        for part in [test, "--pair", "--listen IP:PORT", "--connect IP:PORT"] {
            assert!(words.contains(part), "{part} is not in: {words}");
        }
    }
}

#[test]
fn what_no_device_takes_is_a_wrong_use_and_what_is_not_there_is_not() {
    lab::test(|_| {
        for (arguments, status, part) in [
            ("frame_lat --pair --device packet --mtu 300", 2, "336..=65535"),
            ("udp_bw --pair --size 65508", 2, "65507"),
            ("udp_lat --pair --size 65508", 2, "65507"),
            ("frame_lat --connect 127.0.0.1:9 --device packet:lo", 1, "--listen"),
        ] {
            let output = run(&format!("perf {arguments}"));
            assert_eq!(output.status.code(), Some(status), "{arguments}");
            assert!(said(&output).contains(part), "{arguments}: {}", said(&output));
        }
    });
}

/// Errors that name their cause were followed by it once more.
#[test]
fn a_cause_is_told_once() {
    let output = run("perf frame_lat --pair --device shm --iters 1 --size 5000000000");
    let words = said(&output);
    assert!(words.contains("--size is less than 4 GiB: "), "{words}");
    lab::test(|lab| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let mut one = lab.near.command(env!("CARGO_BIN_EXE_doorbell"));
        one.args(["perf", "frame_lat", "--device", "packet:none", "--connect", &address]);
        let one = one.stderr(Stdio::piped()).spawn().expect("the command runs");
        let (mut stream, _) = listener.accept().expect("it connects");
        let mut plan = String::new();
        BufReader::new(&stream).read_line(&mut plan).expect("what it is to do");
        stream.write_all(plan.as_bytes()).expect("the same");
        let words = said(&one.wait_with_output().expect("it ends"));
        assert_eq!(words.matches("No such device").count(), 1, "{words}");
    });
}

/// In an earlier version, the end of the other process was reported as a connection that was reset,
/// or a pipe that broke.
#[test]
fn an_other_end_that_goes_is_told_as_such() {
    lab::test(|lab| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let mut one = lab.near.command(env!("CARGO_BIN_EXE_doorbell"));
        one.args(["perf", "frame_lat", "--device", "packet:lo", "--connect", &address]);
        let one = one.stderr(Stdio::piped()).spawn().expect("the command runs");
        let (stream, _) = listener.accept().expect("it connects");
        // What has come and was not read makes the end an abrupt one.
        stream.peek(&mut [0]).expect("what it is to do");
        drop(stream);
        let words = said(&one.wait_with_output().expect("it ends"));
        assert!(words.contains("the other end has gone"), "{words}");
    });
}

/// The interfaces of the two ends are made for them. In an earlier version, a name given for one
/// became part of the device's name, and the error named a device that nobody had asked for.
#[test]
fn a_pair_takes_the_name_of_a_device_and_nothing_that_it_is_on() {
    for device in ["packet:eth0", "udp:192.0.2.1", "shm:job", "ether"] {
        let output = run(&format!("perf frame_lat --pair --device {device}"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("`{device}`")) && said.contains("--pair"), "{said}");
    }
}

/// The second process, and with it the namespace that it is in.
#[test]
fn a_pair_whose_first_process_is_killed_leaves_nothing_behind() {
    lab::test(|_| {
        let mut first = doorbell("perf idle_cpu --pair --seconds 15").spawn().expect("it runs");
        // Only when it has asked to end with the first.
        let second = second_of(&mut first, sleeps);
        first.kill().expect("it runs");
        first.wait().expect("it ends");
        // Somebody else reaps it: it is gone, or a mere entry.
        while std::fs::read_to_string(format!("/proc/{second}/stat"))
            .is_ok_and(|stat| !stat.contains(") Z "))
        {
            std::thread::yield_now();
        }
    });
}

/// The second process of a pair, once that is as wanted.
fn second_of(first: &mut Child, wanted: impl Fn(&str) -> bool) -> String {
    let children = format!("/proc/{0}/task/{0}/children", first.id());
    loop {
        assert!(first.try_wait().expect("a child").is_none(), "it ended before");
        let found = std::fs::read_to_string(&children).unwrap_or_default();
        let ours = |child: &&str| {
            let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            line.ends_with(b"--end\0") && wanted(child)
        };
        if let Some(child) = found.split_whitespace().find(ours) {
            return child.to_owned();
        }
        std::thread::yield_now();
    }
}

/// Whether a process sleeps on a device: in the middle of the test.
fn sleeps(process: &str) -> bool {
    let links = std::fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let mut targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    targets.any(|target| target.to_string_lossy().contains("eventpoll"))
}

#[test]
fn the_doctor_tells_what_works() {
    let output = run("doctor --json");
    assert!(output.status.success(), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let interfaces = found["interfaces"].as_array().expect("a list");
    assert!(interfaces.iter().any(|it| it["name"] == "lo"), "{found}");
    let words = run("doctor");
    let lines: Vec<_> = BufReader::new(&words.stdout[..]).lines().map_while(Result::ok).collect();
    assert!(lines[0].starts_with("This machine: Linux"), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("lo: ")), "{lines:?}");
}

#[test]
fn the_doctor_names_what_does_not_work_and_what_to_do() {
    lab::test(|lab| {
        lab.cable("a0", "b0", 1500).expect("a cable");
        lab.near.ip("link set a0 down").expect("it goes down");
        let output = run("doctor");
        let words = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(words.contains("`ip link set a0 up` takes it up"), "{words}");
        lab.near.ip("link set a0 up").expect("it goes up");
        let words = String::from_utf8_lossy(&run("doctor").stdout).into_owned();
        assert!(words.contains("`ip link set a0 mtu 4176`"), "{words}");
    });
}
