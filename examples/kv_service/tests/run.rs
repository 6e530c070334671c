//! The program does what its first lines say.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_kv_service");

/// What the program says when it is run to its end.
fn said(arguments: &[&str]) -> String {
    let output =
        Command::new(PROGRAM).args(arguments).output().expect("the program can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {}: {errors}", output.status);
    String::from_utf8(output.stdout).expect("it says text")
}

/// A server that serves until this is dropped.
struct Serving {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("serve").args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program can be started");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Self { child, lines }
    }

    /// What follows some words on the next line that the server says.
    fn told(&mut self, words: &str) -> String {
        let line = self.lines.next().expect("the server goes on").expect("it says text");
        line.strip_prefix(words).unwrap_or_else(|| panic!("{line}")).to_owned()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a web server answers to a request for a page.
fn page(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("the page is served");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").expect("it can be asked for");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is text");
    answer
}

#[test]
fn without_arguments_the_program_loads_a_server_and_prints_the_results() {
    let said = said(&[]);
    let lines: Vec<_> = said.lines().collect();
    let [serving, calls, times] = lines[..] else { panic!("{said}") };
    assert!(serving.starts_with("serving as shm"), "{said}");
    let count = calls.split_once(" calls in ").and_then(|(count, _)| count.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count > 0), "{said}");
    assert!(times.starts_with("a call took ") && times.ends_with(" µs or less"), "{said}");
}

#[test]
fn clients_in_processes_of_their_own_put_get_scan_and_delete() {
    let mut server = Serving::start(&["udp:127.0.0.1:0"]);
    let name = server.told("serving as ");
    for (key, value) in [("sky", "blue"), ("sea", "green"), ("grass", "green"), ("sky", "grey")] {
        assert_eq!(said(&["put", &name, key, value]), "");
    }
    assert_eq!(said(&["get", &name, "sky"]), "grey\n");
    assert_eq!(said(&["scan", &name, "s"]), "sea\tgreen\nsky\tgrey\n");
    assert_eq!(said(&["scan", &name]), "grass\tgreen\nsea\tgreen\nsky\tgrey\n");
    assert_eq!(said(&["delete", &name, "sky"]), "sky is removed\n");
    assert_eq!(said(&["delete", &name, "sky"]), "sky was not there\n");
    let output = Command::new(PROGRAM).args(["get", &name, "sky"]).output();
    let output = output.expect("the program can be started");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no `sky`"));
}

#[test]
fn a_watch_tells_of_changes_by_other_clients() {
    let mut server = Serving::start(&["udp:127.0.0.1:0"]);
    let name = server.told("serving as ");
    let mut command = Command::new(PROGRAM);
    command.args(["watch", &name, "s"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the program can be started");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut watch = Serving { child, lines };
    // The watch begins at some moment; from then on each put is told of.
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let puts = std::thread::spawn(move || {
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            said(&["put", &name, "grass", "green"]);
            said(&["put", &name, "sky", "blue"]);
        }
        said(&["delete", &name, "sky"]);
    });
    assert_eq!(watch.told("sky\t"), "blue");
    stop.send(()).expect("the puts go on");
    puts.join().expect("the puts succeed");
    while let line @ ("\tblue" | " is removed") = &*watch.told("sky") {
        if line == " is removed" {
            return;
        }
    }
    panic!("the watch tells of other keys");
}

#[test]
fn the_page_of_metrics_shows_the_load() {
    let mut server = Serving::start(&["udp:127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let name = server.told("serving as ");
    let address = server.told("metrics at http://");
    let (address, path) = address.split_once('/').expect("it has a path");
    said(&["load", &name, "--in-flight", "4", "--seconds", "0.2"]);
    let page_of_metrics = page(address, &format!("/{path}"));
    assert!(page_of_metrics.starts_with("HTTP/1.1 200 OK\r\n"), "{page_of_metrics}");
    let value = |name: &str| {
        let mut lines = page_of_metrics.lines();
        let line = lines.find_map(|line| line.strip_prefix(name));
        let value = line.unwrap_or_else(|| panic!("{name} in {page_of_metrics}"));
        value.trim().parse::<f64>().unwrap_or_else(|_| panic!("{name}: {value}"))
    };
    let put = r#"method="kv.Store/put""#;
    let puts = value(&format!("doorbell_rpc_server_calls_total{{{put},code=\"Ok\"}}"));
    assert!(puts > 0.0);
    assert_eq!(value(&format!("doorbell_rpc_server_call_seconds_count{{{put}}}")), puts);
    assert_eq!(value(&format!("doorbell_rpc_server_in_flight{{{put}}}")), 0.0);
    assert!(page_of_metrics.contains("\ndoorbell_nic_retransmitted{"), "{page_of_metrics}");
    assert!(page(address, "/other").starts_with("HTTP/1.1 404 "));
}
