//! `doorbell logp` between machines: here two processes, which meet over loopback.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::{doorbell, run, said};

/// The end that listens, on a port that the system has chosen, and what else it says.
struct Listening {
    child: Child,
    address: String,
    said: BufReader<std::process::ChildStderr>,
}

impl Listening {
    fn start(arguments: &str) -> Self {
        let mut command = doorbell(format!("logp --listen 127.0.0.1:0 {arguments}").trim());
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command runs");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut line = String::new();
        said.read_line(&mut line).expect("a line");
        let address = line.trim().rsplit(' ').next().expect("an address").to_owned();
        Self { child, address, said }
    }

    /// The next line that the end says.
    fn next(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("a line");
        line
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn two_machines_measure_each_layer_on_the_devices_that_both_have() {
    let mut listening = Listening::start("--device udp");
    let address = &listening.address;
    let page = format!("{}/two-machines.html", env!("CARGO_TARGET_TMPDIR"));
    let output = run(&format!(
        "logp --connect {address} --device udp --device shm --quick --json --report {page}"
    ));
    // Shared memory is not measured between machines.
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let page = std::fs::read_to_string(page).expect("the report was written");
    assert!(page.contains("This machine") && page.contains("The other machine"));
    assert!(page.contains("This report is a part only: 5 measurements have failed"));
    let lines = String::from_utf8(output.stdout.clone()).expect("text");
    let layers: Vec<_> = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|line| (line["layer"].clone(), line["device"].clone()))
        .collect();
    let udp = |layer: &str| (json!(layer), json!("udp"));
    let splitc = || udp("splitc");
    assert_eq!(layers, [udp("verbs"), udp("am"), splitc(), splitc(), splitc()]);
    let told = "the end that listens has udp:127.0.0.1:0, and no \"shm\": name it by --device";
    assert!(said(&output).contains(told), "{}", said(&output));
    assert!(listening.child.wait().expect("it is a child").success());
}

#[test]
fn who_is_not_logp_is_not_served_and_the_next_one_is() {
    let mut listening = Listening::start("");
    let mut stranger = TcpStream::connect(&listening.address).expect("it listens");
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it reads");
    let told = listening.next();
    assert!(told.contains("is not served: what the other end said is no word of logp's"), "{told}");
    drop(stranger);
    let address = &listening.address;
    let output = run(&format!("logp --connect {address} --layer verbs --quick --json"));
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn another_version_and_nobody_are_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let other = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("the command connects");
        writeln!(stream, "{}", json!({ "doorbell logp": "0.0.1" })).expect("it reads");
        BufReader::new(stream).lines().count()
    });
    let output = run(&format!("logp --connect {address} --json"));
    assert_eq!(output.status.code(), Some(1));
    let own = env!("CARGO_PKG_VERSION");
    let told = format!("the other end is doorbell 0.0.1, and this one {own}");
    assert!(said(&output).contains(&told), "{}", said(&output));
    other.join().expect("it does not panic");
    let output = run(&format!("logp --connect {address} --json"));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("start `doorbell logp --listen` there first"));
}

/// The processes that a process has started.
fn children(parent: u32) -> Vec<Pid> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = fs::read_to_string(path).unwrap_or_default();
    let number = |child: &str| Pid::from_raw(child.parse().expect("a process number"));
    children.split_whitespace().map(number).collect()
}

/// Interrupts a process, as Ctrl-C does.
fn interrupt(process: &Child) {
    let pid = Pid::from_raw(process.id().try_into().expect("a process number"));
    kill(pid, Signal::SIGINT).expect("it is a child");
}

/// Ctrl-C was remembered for a report of what was measured, and nobody looked at that.
#[test]
fn an_end_that_waits_for_the_other_end_is_ended_by_an_interrupt() {
    let told = "doorbell: interrupted while waiting for the other end\n";
    let mut listening = Listening::start("");
    interrupt(&listening.child);
    assert_eq!(listening.next(), told);
    let status = listening.child.wait().expect("it is a child");
    assert_eq!(status.signal(), Some(Signal::SIGINT as i32));

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut command = doorbell(&format!("logp --connect {address} --json"));
    let connected = command.stderr(Stdio::piped()).spawn().expect("the command runs");
    // Accepted, and never answered.
    let _silent = listener.accept().expect("the command connects");
    interrupt(&connected);
    let output = connected.wait_with_output().expect("it is a child");
    assert!(said(&output).ends_with(told), "{}", said(&output));
    assert_eq!(output.status.signal(), Some(Signal::SIGINT as i32));
}

/// In an earlier version, the connecting end waited up to 20 s for what the other end says of one
/// step.
#[test]
fn an_interrupt_while_the_other_end_is_silent_ends_the_measurement_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut command = doorbell(&format!("logp --connect {address} --json"));
    let connected = command.stderr(Stdio::piped()).spawn().expect("the command runs");
    let (stream, _) = listener.accept().expect("the command connects");
    let mut lines = BufReader::new(&stream).lines();
    let greeting = lines.next().expect("a greeting").expect("text");
    writeln!(&stream, "{greeting}").expect("it reads");
    lines.next().expect("the first step").expect("text");
    interrupt(&connected);
    let output = connected.wait_with_output().expect("it is a child");
    assert!(said(&output).contains("interrupted after"), "{}", said(&output));
    assert_eq!(output.status.code(), Some(1), "nothing was measured");
}

#[test]
fn an_end_that_listens_refuses_what_the_end_that_connects_decides() {
    for option in ["--json", "--csv", "--quick", "--layer am", "--report page", "--svg figures"] {
        let output = run(&format!("logp --listen 127.0.0.1:0 {option}"));
        assert_eq!(output.status.code(), Some(2), "{option}");
        let told = "the argument '--listen <IP:PORT>' cannot be used with";
        assert!(said(&output).contains(told), "{option}: {}", said(&output));
    }
}

/// Two processors were asked for, as for two ends on one machine.
#[test]
fn an_end_that_connects_needs_one_processor() {
    let mut listening = Listening::start("");
    let mut one = CpuSet::new();
    let all = sched_getaffinity(Pid::from_raw(0)).expect("the processors of this process");
    let first = (0..CpuSet::count()).find(|&place| all.is_set(place) == Ok(true));
    one.set(first.expect("a processor")).expect("it is one of the set");
    let address = listening.address.clone();
    // The command has the processors of the thread that starts it.
    let connected = thread::spawn(move || {
        sched_setaffinity(Pid::from_raw(0), &one).expect("one of this process's processors");
        run(&format!("logp --connect {address} --layer verbs --quick --json"))
    });
    let output = connected.join().expect("the command runs");
    assert!(output.status.success(), "{}", said(&output));
    assert!(listening.child.wait().expect("it is a child").success());
}

#[test]
fn an_end_whose_other_end_dies_while_they_measure_says_so_and_ends() {
    for layer in ["verbs", "am", "splitc"] {
        let mut listening = Listening::start("");
        let address = &listening.address;
        let mut command = doorbell(&format!("logp --connect {address} --layer {layer} --json"));
        let connected = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut connected = connected.expect("the command runs");
        let measuring = loop {
            assert!(connected.try_wait().expect("it is a child").is_none(), "it has ended");
            match children(listening.child.id())[..] {
                [measuring] => break measuring,
                _ => thread::sleep(Duration::from_millis(1)),
            }
        };
        listening.child.kill().expect("it is a child");
        // Without the one that has started it, it would be anybody's.
        let _ = kill(measuring, Signal::SIGKILL);
        let output = connected.wait_with_output().expect("it is a child");
        assert_eq!(output.status.code(), Some(1), "{layer}: {}", said(&output));
        assert!(said(&output).contains("nothing was measured"), "{layer}: {}", said(&output));
        assert!(said(&output).contains("the other end"), "{layer}: {}", said(&output));
    }
}
