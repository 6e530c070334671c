//! Lines that come to the service of a job.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use doorbell_job::{Card, JobError, Place, Service, Terms};

use super::input::Input;
use super::proof::proof;
use super::{LONG, SECRET, environment_at, panicked, said, watch_threads};

/// How many processes the job has.
const SIZE: usize = 3;

/// How the last process of the job behaves.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    /// The process meets the others and ends with them.
    Sane,
    /// The process sends the input's words once all have come, and ends.
    Mad,
    /// The process sends the input's words before all have come, and ends; another takes its
    /// place.
    MadAtFirst,
}

/// Gives the service of a job what strangers say, and what a process of the job does. The others
/// meet and end, or learn that this process has ended.
pub fn service(data: &[u8]) {
    watch_threads();
    let mut input = Input(data);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let terms = Terms { size: SIZE, secret: SECRET.as_bytes().to_vec(), within: LONG };
    let service = Service::start(listener, terms).expect("threads are to be had");
    let port = service.address().port();
    let last = input.choose(&[Last::Sane, Last::Mad, Last::MadAtFirst]);
    let words = said(&mut input);
    let strangers: Vec<_> = (0..input.u8() % 4).map(|_| stranger(port, &mut input)).collect();
    if last == Last::MadAtFirst {
        mad(port, &words, false);
    }
    let ends: Vec<_> = thread::scope(|scope| {
        let mut all: Vec<_> =
            (0..SIZE - 1).map(|rank| scope.spawn(move || sane(rank, port))).collect();
        if last == Last::Mad {
            mad(port, &words, true);
        } else {
            all.push(scope.spawn(move || sane(SIZE - 1, port)));
        }
        all.into_iter().map(|one| one.join().expect("no process panics")).collect()
    });
    for end in ends {
        match end {
            Ok(()) => {}
            Err(JobError::Ended { rank: 2 }) if last == Last::Mad => {}
            Err(why) => panic!("a process has ended with {why}"),
        }
    }
    drop((strangers, service));
    panicked();
}

/// Somebody who says something to the service, and stays.
fn stranger(port: u16, input: &mut Input<'_>) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    // The service may have ended the connection by now.
    let _ = stream.write_all(&said(input));
    stream
}

/// A process that does what processes do.
fn sane(rank: usize, port: u16) -> Result<(), JobError> {
    loop {
        let place = Place::find_in(&environment_at(rank, SIZE, port), LONG);
        match place.expect("variables with sense").expect("a place").meet() {
            Ok(members) => return members.finish(),
            // The service has not noticed yet that the one before has ended.
            Err(JobError::Refused { why, .. }) if why.contains("has come already") => {}
            Err(why) => return Err(why),
        }
    }
}

/// The last process comes, proves that it knows the secret, says something else than processes do,
/// and ends.
fn mad(port: u16, words: &[u8], waits: bool) {
    let (rank, size, own) = ("2", "3", "abc");
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    let mut lines = BufReader::new(stream.try_clone().expect("a descriptor is left"));
    let mut line = String::new();
    writeln!(&stream, "doorbell-job 5 {rank} {size} {own}").expect("the service is there");
    lines.read_line(&mut line).expect("the service answers");
    let theirs = line.split(' ').nth(1).expect("the service's nonce");
    let proof = proof("process", rank, size, port, [own, theirs]);
    writeln!(&stream, "card {proof} {}", Card::default()).expect("the service is there");
    if waits {
        line.clear();
        lines.read_line(&mut line).expect("all come");
        assert!(line.starts_with("cards 3 "), "{line:?} tells no cards");
    }
    // The service ends the connection at the first word that it does not know.
    let _ = (&stream).write_all(words);
}
