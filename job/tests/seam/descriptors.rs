//! What a process does with a descriptor that its environment names.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use doorbell_job::{Environment, Place};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// Starts a process with a `PMI_FD` and a descriptor 7, and returns what the process prints of its
/// place.
fn said_with(number: &str, seventh: impl Into<OwnedFd>) -> String {
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        r#"exec 7<&0 9>&-; exec "$0" --exact descriptors::looks_for_its_place --nocapture"#,
    ]);
    shell.arg(std::env::current_exe().expect("a test is a program"));
    shell.env("PMI_FD", number).env("PMI_RANK", "0").env("PMI_SIZE", "1").env("IS_STARTED", "1");
    let output = shell.stdin(Stdio::from(seventh.into())).output().expect("there is a shell");
    String::from_utf8(output.stdout).expect("text")
}

/// The program that [`said_with`] starts. Without that, there is nothing to be found.
#[test]
fn looks_for_its_place() {
    let place = Place::find(LONG);
    if std::env::var_os("IS_STARTED").is_some() {
        println!("{}", place.map_or_else(|why| why.to_string(), |_| "a place".to_owned()));
    }
}

/// Whatever number there was, the descriptor was taken for a Unix socket: that of a network was
/// spoken to, and errors named neither the variable's number nor what was there.
#[test]
fn a_descriptor_that_is_no_launchers_is_refused_by_its_variable_and_number_and_what_it_is() {
    let file = || File::open("/etc/passwd").expect("everybody may read it");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let stream = TcpStream::connect(listener.local_addr().expect("it is bound"));
    let path = format!("{}/{}.sock", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    let open = UnixListener::bind(&path).expect("nobody else has that name");
    std::fs::remove_file(&path).expect("it is there");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    let (datagrams, _other) = UnixDatagram::pair().expect("descriptors");
    for (number, seventh, expected) in [
        ("9", file().into(), "PMI_FD is 9, and descriptor 9 is not open"),
        ("100000000", file().into(), "descriptor 100000000 is not open"),
        ("7", OwnedFd::from(file()), "PMI_FD is 7, and descriptor 7 is no socket, but /etc/passwd"),
        ("0", file().into(), "PMI_FD is 0, and descriptor 0 is a standard descriptor"),
        ("1", file().into(), "PMI_FD is 1, and descriptor 1 is a standard descriptor"),
        ("7", stream.expect("somebody listens").into(), "descriptor 7 is a socket of family 2 "),
        ("7", udp.into(), "descriptor 7 is a socket of family 2 and type 2"),
        ("7", datagrams.into(), "descriptor 7 is a socket of family 1 and type 2"),
        ("7", open.into(), "descriptor 7 is a Unix socket that is not connected"),
        ("-1", file().into(), "PMI_FD is `-1`: the number of a descriptor"),
        ("seven", file().into(), "PMI_FD is `seven`: the number of a descriptor"),
    ] {
        let said = said_with(number, seventh);
        assert!(said.contains(expected), "{number}: {said}, and not {expected}");
    }
}

#[test]
fn a_connected_socket_that_a_launcher_has_left_open_is_spoken_to() {
    let (theirs, mut own) = UnixStream::pair().expect("descriptors");
    let launcher = std::thread::spawn(move || {
        let mut asked = [0; 9];
        own.read_exact(&mut asked).expect("it asks");
        asked
    });
    let said = said_with("7", theirs);
    assert!(said.contains("the launcher has ended the connection"), "{said}");
    assert_eq!(&launcher.join().expect("no panic"), b"cmd=init ");
}

/// A safe program could have the library speak to any socket of its own, or of another library's,
/// by a number.
#[test]
fn variables_that_a_program_makes_up_name_no_descriptor() {
    let (own, mut other) = UnixStream::pair().expect("descriptors");
    let number = own.as_raw_fd().to_string();
    let variables = [("PMI_FD", &*number), ("PMI_RANK", "0"), ("PMI_SIZE", "1")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let found = Place::find_in(&Environment::from_iter(variables), Duration::from_millis(100));
    other.set_nonblocking(true).expect("it is open");
    let heard = other.read(&mut [0]).map_err(|why| why.kind());
    assert_eq!(heard, Err(ErrorKind::WouldBlock), "nothing is said to it");
    let why = found.expect_err("it names a descriptor").to_string();
    assert!(why.contains(&format!("PMI_FD is `{number}`: only the environment")), "{why}");
}
