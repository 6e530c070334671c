//! The program of another user of the machine, who wants to take part in a job.

use std::io::{BufRead, BufReader, Write, stdout};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

/// Looks for the sockets of a job, of whose process 0 the number is given, says words to each, and
/// prints what it is told.
pub fn attack(job: &str, words: &str) {
    let shown = std::fs::read_to_string("/proc/net/unix").expect("everybody may read it");
    let names = shown.lines().filter_map(|line| line.split_once(" @").map(|(_, name)| name));
    let names: Vec<_> = names.filter(|name| name.contains(job)).collect();
    let connect = |name: &&str| UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?);
    let sockets: Vec<UnixStream> = names.iter().flat_map(connect).collect();
    for mut socket in &sockets {
        socket.write_all(words.as_bytes()).expect("it is taken");
    }
    println!("has said it to {} sockets", sockets.len());
    stdout().flush().expect("somebody reads");
    for socket in sockets {
        for line in BufReader::new(socket).lines().map_while(Result::ok) {
            println!("was told {line}");
        }
    }
    for secret in ["environ", "fd", "maps"] {
        if std::fs::read_dir(format!("/proc/{job}/{secret}")).is_ok()
            || std::fs::read(format!("/proc/{job}/{secret}")).is_ok()
        {
            println!("has read {secret}");
        }
    }
}
