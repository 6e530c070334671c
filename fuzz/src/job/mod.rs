//! The ends of a job's lines, given what no process, service or launcher would say.
//!
//! `card` takes the input for a process's description of itself. `launcher` has a process hear the
//! input from its launcher. `service` has strangers say it to the service of a job, and a process
//! that knows the secret. `process` has a process hear it from a service, one that knows the secret
//! or one that does not.
//!
//! What is checked: nothing panics, in threads of the library neither, and nobody waits for longer
//! than is said. Strangers keep no process of the job from meeting the others and ending with them.

#![allow(dead_code, unused_imports, reason = "each target uses one of the bodies")]

#[path = "../input.rs"]
mod input;
mod process;
mod proof;
mod service;

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorbell_job::{Card, Environment, Place};

use input::Input;
pub use process::process;
pub use service::service;

/// How long anything may take that an input does not hold up. It is the bound of a test that would
/// hang else.
const LONG: Duration = Duration::from_secs(60);

/// The secret of the jobs.
const SECRET: &str = "a secret that was drawn";

/// Parses a process's card, and checks that a card which was written is parsed to the same card.
pub fn card(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(card) = Card::parse(3, &text) {
        let written = card.to_string();
        assert!(!written.contains(['\n', '\r']), "{written:?} is one line");
        assert_eq!(Card::parse(3, &written).expect("it was written so"), card);
    }
}

/// The longest input that a launcher says: less than a socket takes without being read.
const MOST_SAID: usize = 32 << 10;

/// A process that speaks with a launcher ends with it, and takes nothing for answers but answers.
pub fn launcher(data: &[u8]) {
    let said = said(&mut Input(data));
    let (own, mut other) = UnixStream::pair().expect("descriptors are left");
    other.write_all(&said[..said.len().min(MOST_SAID)]).expect("it is taken");
    other.shutdown(Shutdown::Write).expect("it is open");
    let environment = environment(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]).with_launcher(own);
    if Place::find_in(&environment, LONG).is_ok() {
        let said = String::from_utf8_lossy(&said);
        let mut lines = said.lines();
        for expected in ["cmd=response_to_init", "cmd=maxes", "cmd=my_kvsname"] {
            let line = lines.next().expect("there is an answer");
            assert!(line.contains(expected), "{line:?} is taken for an answer");
        }
    }
    panicked();
}

/// The environment of a process with some variables.
fn environment(variables: &[(&str, &str)]) -> Environment {
    variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The environment of a process of a job that is served at a port.
fn environment_at(rank: usize, size: usize, port: u16) -> Environment {
    environment(&[
        ("DOORBELL_RANK", &rank.to_string()),
        ("DOORBELL_SIZE", &size.to_string()),
        ("DOORBELL_RENDEZVOUS", &format!("127.0.0.1:{port},served")),
        ("DOORBELL_SECRET", SECRET),
    ])
}

/// The pieces of what is said: whole lines, and parts of lines.
const PIECES: [&str; 38] = [
    "\n",
    " ",
    "=",
    "doorbell-job 5 0 3 abc\n",
    "doorbell-job 5 2 3 abc\n",
    "doorbell-job 5 ",
    "doorbell-job 6 0 3 abc\n",
    "nonce abc def\n",
    "nonce ",
    "card abc =a =b =c =d\n",
    "card ",
    "cards 3\n",
    "cards 3 abc\n",
    "first 1\n",
    "noted\n",
    "cards 99999999999\n",
    "=a =b =c =d\n",
    "=%20 = = =%\n",
    "=%\u{e9}\n",
    "tell =a\n",
    "tell \n",
    "told 3\n",
    "told 3\n=a\n=b\n=c\n",
    "bye\n",
    "after 1\n",
    "after 2\n",
    "after 99999999999999999999\n",
    "ended 1\n",
    "ended 99999999999\n",
    "over\n",
    "refused \u{1b}[2J\n",
    "failed why\n",
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=1024\n",
    "cmd=my_kvsname kvsname=job rc=0\n",
    "cmd=maxes vallen_max=-1 rc=1 msg=a b c\n",
    "rc=",
    "cmd=",
];

/// The most bytes that are said: more than any line may have.
const MOST: usize = 80 << 10;

/// The bytes that an input has somebody send: pieces, stretches of the input, and long rows of one byte.
fn said(input: &mut Input<'_>) -> Vec<u8> {
    let mut said = Vec::new();
    for _ in 0..input.u8() % 24 {
        match input.u8() {
            at if usize::from(at) < 6 * PIECES.len() => {
                said.extend(PIECES[usize::from(at) % PIECES.len()].as_bytes());
            }
            at if at % 3 == 0 => {
                let (byte, len) = (input.u8(), input.u16().into());
                said.extend(std::iter::repeat_n(byte, len));
            }
            _ => {
                let len = input.u8().into();
                said.extend(input.bytes(len));
            }
        }
    }
    said.truncate(MOST);
    said
}

static PANICKED: AtomicBool = AtomicBool::new(false);

/// Sees to it that a panic of a thread of the library is noticed.
fn watch_threads() {
    static WATCHED: Once = Once::new();
    WATCHED.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let name = std::thread::current().name().map(str::to_owned);
            if name.is_some_and(|name| name.starts_with("job-")) {
                PANICKED.store(true, Ordering::Relaxed);
            }
            before(panic);
        }));
    });
}

/// Fails if a thread of the library has panicked.
fn panicked() {
    assert!(!PANICKED.load(Ordering::Relaxed), "a thread of the library has panicked");
}
