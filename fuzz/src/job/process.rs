//! Lines that come to a process of a job.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use doorbell_job::Place;

use super::input::Input;
use super::proof::proof;
use super::{environment_at, panicked, said, watch_threads};

/// How long a process looks for the service.
const WITHIN: Duration = Duration::from_millis(40);

/// Gives a process what somebody says in place of the service, who knows the secret or does not. The
/// process ends, well or not, and takes nobody for the service who does not know the secret.
pub fn process(data: &[u8]) {
    watch_threads();
    let mut input = Input(data);
    let knows = input.u8() % 4 > 0;
    let (first, words) = (said(&mut input), said(&mut input));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                // The process may end the connection at any time.
                let _ = serve(stream.expect("a process comes"), port, knows, &first, &words);
            }
        });
        let place = Place::find_in(&environment_at(0, 3, port), WITHIN);
        let met = place.expect("variables with sense").expect("a place").meet();
        assert!(knows || met.is_err(), "somebody without the secret is taken for the service");
        if let Ok(members) = met {
            assert_eq!(members.cards().len(), 3);
            if let Ok(texts) = members.exchange("a text") {
                assert_eq!(texts.len(), 3);
            }
            let _ = members.finish();
        }
        is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(("127.0.0.1", port));
    });
    panicked();
}

/// Greets a process as the service does if the secret is known, and says something.
fn serve(
    stream: TcpStream,
    port: u16,
    knows: bool,
    first: &[u8],
    words: &[u8],
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    if lines.read_line(&mut line)? == 0 {
        // The process has waited for its turn for long, and comes again.
        return Ok(());
    }
    let words_of: Vec<_> = line.split_whitespace().collect();
    let &[_, _, rank, size, theirs] = &words_of[..] else { panic!("{line:?} is no greeting") };
    if !knows {
        return (&stream).write_all(first);
    }
    let proof = proof("service", rank, size, port, [theirs, "abc"]);
    writeln!(&stream, "nonce abc {proof}")?;
    line.clear();
    if lines.read_line(&mut line)? == 0 {
        return Ok(());
    }
    assert!(line.starts_with("card "), "{line:?} is no card");
    // Half of what is said follows cards with sense.
    if first.len().is_multiple_of(2) {
        (&stream).write_all(b"cards 3 abc\n= = = =\n= = = =\n= = = =\n")?;
    }
    (&stream).write_all(first)?;
    (&stream).write_all(words)
}
