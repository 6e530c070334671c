//! The examples run as examples/README.md and their own first lines say that they do.
//!
//! They are those that `cargo test` has built; `cargo test -p doorbell-examples` builds them first.
//! None needs privileges, and so none has any: if this is root, an ordinary user runs them.

mod congestion;
mod jobs;
mod printed;
mod program;

use std::path::Path;

use doorbell::protocol::pcap::Reader;
use doorbell_kit::lab::{self, Namespace};

use printed::{Command, commands, is_as_shown};
use program::{Folder, Program, Starter};

/// Examples whose output their README does not show. Each has a test of its own below.
const NOT_SHOWN: [&str; 2] = ["dissect", "rping"];

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// What a file of this repository has them typed.
fn printed_in(file: &str) -> Vec<Command> {
    commands(&std::fs::read_to_string(root().join(file)).expect("the file is there"))
}

/// The one way in which the README has an example run.
fn in_the_readme(example: &str) -> Vec<String> {
    let mut found = printed_in("examples/README.md");
    found.retain(|command| command.example == example);
    let [command] = &found[..] else { panic!("once, and not so: {found:?}") };
    command.arguments.clone()
}

/// What an example says that is run as a user runs it: from the root of the repository.
fn run(place: &Namespace, example: &str, arguments: &[String]) -> String {
    Program::start(place, root(), example, arguments).end()
}

#[test]
fn each_example_in_the_readme_says_what_is_shown_there() {
    lab::test(|lab| {
        let all = printed_in("examples/README.md");
        let (shown, others): (Vec<_>, Vec<_>) = all.iter().partition(|it| !it.shown.is_empty());
        assert!(shown.len() >= 6, "{all:?}");
        for other in others {
            let known = NOT_SHOWN.contains(&other.example.as_str())
                || shown.iter().any(|it| it.runs_as(other));
            assert!(known, "no test runs {other:?}: show what it says, or add a test of it here");
        }
        for Command { example, arguments, shown } in shown {
            let said = run(&lab.near, example, arguments);
            let expected = shown.join("\n");
            assert!(is_as_shown(&said, shown), "{example} says\n{said}and it shows\n{expected}");
        }
    });
}

#[test]
fn hello_goes_over_sockets_as_its_first_lines_say() {
    lab::test(|lab| {
        let all = printed_in("examples/hello.rs");
        let [_, over] = &all[..] else { panic!("one in memory, and one over sockets: {all:?}") };
        assert_eq!(over.arguments, ["udp:127.0.0.1", "udp:127.0.0.2"]);
        let said = run(&lab.near, "hello", &over.arguments);
        assert_eq!(said, "16 bytes were written here: hello, neighbour\n");
    });
}

/// Examples printed by a macro that panics where standard output is a full disk or a pipe that
/// nobody reads, as behind `| head`.
#[test]
fn an_example_that_can_not_print_ends_with_an_error_and_without_a_panic() {
    lab::test(|lab| {
        for example in ["add", "hello", "greeter", "kv", "lossy", "wordcount", "pipeline"] {
            let full = std::fs::File::options().write(true).open("/dev/full").expect("a device");
            let (reader, unread) = std::io::pipe().expect("a descriptor is left");
            drop(reader);
            for (out, why) in
                [(full.into(), "No space left on device"), (unread.into(), "Broken pipe")]
            {
                let itself = Starter::Itself;
                let started =
                    Program::start_into(Some(out), itself, &lab.near, root(), example, &[]);
                let said = started.fail();
                let told = said.matches(why).count() == 1 && !said.contains("panicked");
                assert!(told, "{example}: {said}");
            }
        }
    });
}

/// The arguments of a command, with the devices that it names, or those of another kind instead.
fn on(device: &str, command: &Command, server: &str) -> Vec<String> {
    let name = |end| format!("shm:{}/{}/{end}", command.example, std::process::id());
    let other = |argument: &String| match (device, argument.as_str()) {
        ("shm", name) if name.starts_with("udp:127.0.0.1:4791") => server.to_owned(),
        ("shm", "udp:127.0.0.1") => name("server"),
        ("shm", "udp:127.0.0.2") => name("client"),
        (_, same) => same.to_owned(),
    };
    command.arguments.iter().map(other).collect()
}

#[test]
fn kv_serves_clients_that_are_other_processes() {
    lab::test(|lab| {
        let all = printed_in("examples/kv.rs");
        let [_, serve, put, get] = &all[..] else { panic!("a server, and two clients: {all:?}") };
        for device in ["udp", "shm"] {
            let mut server = Program::start(&lab.near, root(), "kv", &on(device, serve, ""));
            let name = server.hear("serving as ");
            assert_eq!(run(&lab.near, "kv", &on(device, put, &name)), "");
            assert_eq!(run(&lab.near, "kv", &on(device, get, &name)), "blue\n");
        }
    });
}

#[test]
fn greeter_serves_clients_that_are_other_processes() {
    lab::test(|lab| {
        let all = printed_in("examples/greeter.rs");
        let [_, serve, call] = &all[..] else { panic!("a server, and a client: {all:?}") };
        let device = format!("shm:greeter/{}", std::process::id());
        for (device, name) in
            [(&serve.arguments[1], &call.arguments[1]), (&device, &format!("{device}#7"))]
        {
            let serve = ["serve", device].map(str::to_owned);
            let mut server = Program::start(&lab.near, root(), "greeter", &serve);
            assert_eq!(server.hear("serving as "), format!("{device}#0000000000000007"));
            let call = ["call", name, "Ann"].map(str::to_owned);
            assert_eq!(run(&lab.near, "greeter", &call), "Hello Ann\n");
        }
    });
}

#[test]
fn transfer_goes_from_one_process_to_another() {
    lab::test(|lab| {
        let all = printed_in("examples/transfer.rs");
        let [_, receive, send] = &all[..] else { panic!("a receiver, and a sender: {all:?}") };
        for device in ["udp", "shm"] {
            let folder = Folder::new();
            // More than the parts that are lent, and then a part that is not full.
            let bytes: Vec<u8> = (0..3_000_001_u32).map(|at| (at ^ at >> 9) as u8).collect();
            std::fs::write(folder.join("file.bin"), &bytes).expect("there is room");
            let start =
                |arguments: &[String]| Program::start(&lab.near, &folder, "transfer", arguments);
            let mut receiver = start(&on(device, receive, ""));
            let address = receiver.hear("waiting at ");
            let said = start(&on(device, send, &address)).end();
            assert_eq!(said, "3000001 bytes sent\n");
            let said = receiver.end();
            assert!(said.ends_with("\n3000001 bytes received\n"), "{said}");
            let copy = std::fs::read(folder.join("copy.bin")).expect("it is written");
            assert!(copy == bytes, "over {device} the copy is not the file");
        }
    });
}

#[test]
fn file_server_serves_clients_that_are_other_processes() {
    lab::test(|lab| {
        let all = printed_in("examples/file_server.rs");
        let [_, serve, get] = &all[..] else { panic!("a server, and a client: {all:?}") };
        for device in ["udp", "shm"] {
            let folder = Folder::new();
            let bytes: Vec<u8> = (0..3_000_001_u32).map(|at| (at ^ at >> 9) as u8).collect();
            std::fs::write(folder.join("LICENSE-MIT"), &bytes).expect("there is room");
            let start =
                |arguments: &[String]| Program::start(&lab.near, &folder, "file_server", arguments);
            let mut server = start(&on(device, serve, ""));
            let name = server.hear("serving as ");
            assert_eq!(start(&on(device, get, &name)).end(), "3000001 bytes received\n");
            let copy = std::fs::read(folder.join("copy")).expect("it is written");
            assert!(copy == bytes, "over {device} the copy is not the file");
        }
    });
}

/// The README has it meet another implementation, in whose place this one waits.
#[test]
fn rping_meets_one_that_waits_on_another_address() {
    lab::test(|lab| {
        let arguments = in_the_readme("rping");
        let [here, there] = &arguments[..] else { panic!("it and a peer: {arguments:?}") };
        for device in [here, there] {
            let address = device.strip_prefix("udp:").expect("by the kernel's sockets");
            lab.near.ip(&format!("addr add {address}/32 dev lo")).expect("it gets an address");
        }
        let waits = std::slice::from_ref(there);
        let mut waits = Program::start(&lab.near, root(), "rping", waits);
        waits.hear(&format!("waiting at {there}"));
        let said = run(&lab.near, "rping", &arguments);
        assert_eq!(said.lines().count(), 10, "{said}");
        assert!(said.lines().all(|line| line.starts_with("rdma-ping-")), "{said}");
        for served in [waits.end(), run(&lab.near, "rping", &[])] {
            let all = "10 messages were read, and written back\n";
            assert!(served.ends_with(all), "{served}");
        }
    });
}

#[test]
fn dissect_prints_every_packet_of_a_capture() {
    lab::test(|lab| {
        let arguments = in_the_readme("dissect");
        let said = run(&lab.near, "dissect", &arguments);
        let file = std::fs::read(root().join(&arguments[0])).expect("the capture is there");
        let records = Reader::new(&file).expect("a capture").count();
        for number in 1..=records {
            let line = said.lines().find(|line| line.starts_with(&format!("{number:5}  ")));
            assert!(line.is_some(), "packet {number} is not in\n{said}");
        }
        for what in ["RcSendOnly", "RcReadRequest", "RcReadResponseOnly", "RcWriteOnly"] {
            assert!(said.contains(what), "{what} is not in\n{said}");
        }
    });
}

/// The names of the rows in the table that an example in Split-C prints. Above the rows are two
/// lines, and below them one.
fn rows(said: &str) -> Vec<&str> {
    let lines: Vec<_> = said.lines().collect();
    let [_, _, rows @ .., _] = &lines[..] else { panic!("there is no table in\n{said}") };
    rows.iter().map(|row| row.split("  ").next().unwrap_or_default()).collect()
}

/// Runs an example in Split-C in each way that its first lines print, and then with three
/// processes. Returns what the example said each time.
fn run_in_each_way(place: &Namespace, example: &str) -> Vec<String> {
    let printed = printed_in(&format!("examples/{example}/main.rs"));
    assert_eq!(printed.len(), 3, "{printed:?}");
    let quick = ["--quick", "--processes", "3"].map(str::to_owned).to_vec();
    let mut all: Vec<_> = printed.into_iter().map(|command| command.arguments).collect();
    all.push(quick);
    all.iter().map(|arguments| run(place, example, arguments)).collect()
}

/// The thread that answers slept through the end of the measurement, and nobody woke it.
#[test]
fn measure_prints_the_parameters_and_ends() {
    lab::test(|lab| {
        let all = printed_in("examples/measure.rs");
        let [command] = &all[..] else { panic!("one way to run it: {all:?}") };
        for _ in 0..2 {
            let said = run(&lab.near, "measure", &command.arguments);
            assert!(said.starts_with("o_s ") && said.contains(" µs, RTT "), "{said}");
        }
    });
}

#[test]
fn em3d_has_the_result_of_the_sequential_program_in_each_variant_and_way() {
    lab::test(|lab| {
        let said = run_in_each_way(&lab.near, "em3d");
        let all = ["sequential", "read", "get", "store", "bulk"];
        let expected: [&[&str]; 4] = [&all, &["sequential", "bulk"], &all, &all];
        for (said, expected) in said.iter().zip(expected) {
            assert_eq!(rows(said), expected, "{said}");
            assert!(
                said.ends_with("\nall results are those of the sequential program\n"),
                "{said}"
            );
        }
    });
}

#[test]
fn sample_sort_has_the_result_of_the_sequential_program_in_each_way() {
    lab::test(|lab| {
        let mut said = run_in_each_way(&lab.near, "sample_sort");
        // Two different keys for five processes: some parts of the array get all keys, others none.
        let uneven = ["--quick", "--threads", "5", "--different", "2"].map(str::to_owned);
        said.push(run(&lab.near, "sample_sort", &uneven));
        for said in said {
            assert_eq!(rows(&said), ["sequential", "sample sort"], "{said}");
            assert!(said.ends_with("\nthe result is that of the sequential program\n"), "{said}");
        }
    });
}
