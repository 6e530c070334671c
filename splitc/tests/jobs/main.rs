//! Jobs as processes, and what the environment says: results, ends, and nonsense.
//!
//! Processes of a job run the program that has started them from its beginning, so this is a
//! program of its own: without arguments it runs every case below, each as a process of this
//! program with the case's name as argument, and looks at what that says and how it ends.

mod cases;
mod strangers;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use doorbell_kit::{PATIENCE, effort, stranger};
use doorbell_splitc::{Config, Job, RunError};

use cases::{config, run_case};

/// The prefix of an argument that names a case.
const CASE: &str = "case:";

fn main() -> ExitCode {
    if let Some(case) =
        std::env::args().nth(1).and_then(|arg| Some(arg.strip_prefix(CASE)?.to_owned()))
    {
        return run_case(&case);
    }
    let filters: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, test) in TESTS {
        if filters.is_empty() || filters.iter().any(|filter| name.contains(filter)) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

const TESTS: &[(&str, fn())] = &[
    ("a_job_returns_what_process_0_returns", || {
        for device in ["shm", "udp:127.0.0.1:0"] {
            let said = ends_well(case("results").env("CASE_DEVICE", device));
            assert_eq!(said.lines().filter(|line| *line == "sum 6").count(), 4, "{said}");
            assert_eq!(said.lines().filter(|line| *line == "returned 1000").count(), 1, "{said}");
        }
    }),
    ("how_a_process_ends_that_fails_is_told", || {
        let cases = [
            ("fails", "process 2 ended with exit status: 1"),
            ("panics", "process 2 ended with exit status: 1"),
            ("exits-7", "process 2 ended with exit status: 7"),
            ("aborts", "process 2 ended with signal: 6"),
            ("exits-0", "process 2 ended with exit status: 0 before the job was over"),
        ];
        for (how, expected) in cases {
            for device in ["shm", "udp:127.0.0.1:0"] {
                let said = ends_well(case("dies").env("CASE_HOW", how).env("CASE_DEVICE", device));
                assert!(said.contains(expected), "{how}, {device}: {said}");
            }
        }
    }),
    // Process 0 named one that had ended because of the one that had returned, which it had noticed
    // first.
    ("a_process_that_returns_too_early_is_named_and_no_other", || {
        for rank in ["1", "2"] {
            for _ in 0..effort(3, 30) {
                let returns =
                    case("returns").env("CASE_RANK", rank).stderr(Stdio::piped()).output();
                let output = returns.expect("the program runs");
                let said = [&output.stdout[..], &output.stderr[..]].concat();
                let said = String::from_utf8(said).expect("text");
                assert!(said.contains("wrong: "), "{said}");
                for other in (0..3).filter(|other| other.to_string() != rank) {
                    for line in said.lines().filter(|line| !line.contains(" was the first to end"))
                    {
                        let named =
                            [format!("process {other} has"), format!("process {other} ended")];
                        assert!(!named.iter().any(|named| line.contains(named)), "{said}");
                    }
                }
            }
        }
    }),
    ("when_process_0_fails_the_others_end", || {
        for how in ["fails", "panics"] {
            let said = ends_well(case("zero-dies").env("CASE_HOW", how));
            let expected = if how == "fails" { "process 0: " } else { "process 0 panicked: " };
            // Both by `Display` and by `Debug`, which is what `fn main() -> Result` shows.
            assert_eq!(said.matches(&format!("{expected}as it should")).count(), 2, "{said}");
            assert_eq!(pids(&said).len(), 2);
            pids(&said).into_iter().for_each(is_gone);
        }
    }),
    ("when_process_0_is_killed_the_others_end_whatever_they_do", || {
        let mut first = Watched::start(&mut case("computes"));
        let all: Vec<_> = (0..2).map(|_| first.line()).collect();
        first.0.kill().expect("it runs");
        all.iter().flat_map(|line| pids(line)).for_each(is_gone);
    }),
    ("a_program_runs_one_job_of_processes", || {
        let said = ends_well(&mut case("second"));
        assert!(said.contains("this program has run a job of processes before"), "{said}");
    }),
    ("a_process_that_ends_before_it_has_joined_is_named_at_once", || {
        let ways = [
            ("0", "exit status: 0"),
            ("3", "exit status: 3"),
            ("returns", "exit status: 0"),
            ("aborts", "signal: 6"),
            ("refused", "exit status: 1"),
        ];
        for (how, status) in ways {
            for rank in ["1", "2"] {
                let said = ends_well(case("early").env("CASE_HOW", how).env("CASE_RANK", rank));
                let expected = format!("process {rank} ended with {status}");
                assert!(said.contains(&expected), "{how}, {rank}: {said}");
                assert!(said.contains("before it had joined"), "{how}, {rank}: {said}");
            }
        }
    }),
    // Process 0 listened to a socket whose name everybody could read, and took whoever connected
    // there for one of the processes: the first of these words made another user process 1.
    ("another_user_of_the_machine_neither_takes_part_in_a_job_nor_stops_it", || {
        for words in ["1 udp:127.0.0.1:9\n", "nonsense\n", "1 udp:127", ""] {
            let gate = TcpListener::bind("127.0.0.1:0").expect("a port is free");
            let at = gate.local_addr().expect("it is bound").to_string();
            let device = "udp:127.0.0.1:0";
            let job =
                Watched::start(case("awaited").env("CASE_GATE", at).env("CASE_DEVICE", device));
            let waiting = [(); 2].map(|()| gate.accept().expect("it comes").0);
            let Some(mut stranger) = stranger::command(None) else { return };
            stranger.arg(format!("{CASE}stranger")).stdout(Stdio::piped());
            stranger.env("CASE_JOB", job.0.id().to_string()).env("CASE_WORDS", words);
            let mut stranger = Watched::start(&mut stranger);
            let said = stranger.line();
            assert!(said.starts_with("has said it"), "{said}");
            drop(waiting);
            let said = job.ends_well();
            assert_eq!(said.matches("sum 3").count(), 3, "{words:?}: {said}");
            assert_eq!(stranger.ends_well(), "", "{words:?}");
        }
    }),
    // Process 0 read from one process at a time, and each for as long as all might take together.
    ("a_process_that_says_half_a_line_delays_no_news_and_is_named_at_the_deadline", || {
        let mut half = case("half");
        half.env("CASE_WORDS", "at udp:").env("CASE_WITHIN", "3600000").env("CASE_HOW", "ends");
        let said = ends_well(&mut half);
        assert!(said.contains("process 2 ended with exit status: 3"), "{said}");
        let said = ends_well(half.env("CASE_WITHIN", "200").env("CASE_HOW", "comes"));
        let expected = "process 1 at an address that it has not told was not met within 200ms";
        assert!(said.contains(expected), "{said}");
    }),
    // A line was read to its end, however long it was.
    ("a_process_that_says_something_else_ends_the_job_and_is_named", || {
        let long = "a".repeat(100_000);
        for (words, expected) in [
            ("", "process 1 at an address that it has not told was not met within 200ms: it did"),
            ("nonsense\n", "it has told no address, but \"nonsense"),
            ("at a b\n", "it has told no address, but"),
            ("at a\nat b\n", "more than one line came at once"),
            (&long, "a line is longer than 4096 bytes"),
        ] {
            let mut half = case("half");
            half.env("CASE_WITHIN", if words.is_empty() { "200" } else { "3600000" });
            let said = ends_well(half.env("CASE_WORDS", words));
            assert!(
                said.contains("could not join: process 1 ") && said.contains(expected),
                "{said}"
            );
        }
    }),
    // The variables by which a process knew its job went on to whatever it started.
    ("what_a_process_of_a_job_starts_inherits_nothing_of_the_job", || {
        for device in ["shm", "udp:127.0.0.1:0"] {
            let said = ends_well(case("begets").env("CASE_DEVICE", device));
            assert_eq!(said.matches("has inherited").count(), 2, "{said}");
            // Sockets that this test has inherited itself go on to everybody.
            let own = cases::inherited_sockets();
            assert_eq!(
                said.matches(&format!("has inherited {own:?}")).count(),
                2,
                "{own:?}: {said}"
            );
            assert!(!said.contains("DOORBELL_JOB"), "{said}");
        }
    }),
    // The inner program took itself for the process of the outer job that had started it.
    ("a_process_of_a_job_runs_a_program_that_is_another_job", || {
        let said = ends_well(&mut case("nests"));
        assert_eq!(said.matches("sum 6").count(), 4, "{said}");
        assert!(said.contains("returned 1000") && said.contains("returned ()"), "{said}");
    }),
    ("durations_without_an_end_are_as_good_as_any", || {
        for device in ["shm", "udp:127.0.0.1:0"] {
            let said = ends_well(case("longest").env("CASE_DEVICE", device));
            assert_eq!(said.matches("sum 3").count(), 3, "{said}");
            assert!(said.contains("returned ()"), "{said}");
        }
    }),
    ("the_environment_says_what_a_program_runs_as", || {
        let said = ends_well(case("environment").env("DOORBELL_PROCESSES", "3"));
        assert_eq!(said.matches("rank of 3").count(), 3, "{said}");
        let said = ends_well(case("environment").env("DOORBELL_THREADS", "4"));
        assert_eq!(said.matches("rank of 4").count(), 4, "{said}");
        let carrier = "one-sided";
        let mut threads = case("environment");
        let threads = threads.env("DOORBELL_THREADS", "2").env("DOORBELL_CARRIER", carrier);
        assert!(ends_well(threads).contains(carrier));
        let device = ("DOORBELL_DEVICE", "udp:127.0.0.1:0");
        let said =
            ends_well(case("environment").env("DOORBELL_THREADS", "2").env(device.0, device.1));
        assert!(said.contains("at udp:127.0.0.1"), "{said}");
        let everything = std::thread::available_parallelism().map_or(1, usize::from);
        let said = ends_well(&mut case("environment"));
        assert_eq!(said.matches(&format!("rank of {everything}")).count(), everything, "{said}");
    }),
    ("nonsense_in_the_environment_is_named", || {
        let nonsense = [
            [("DOORBELL_RANK", "first"), ("DOORBELL_ADDRESSES", "shm:a/0")],
            [("DOORBELL_ADDRESSES", "shm:a/0"), ("", "")],
            [("DOORBELL_PROCESSES", "many"), ("", "")],
            [("DOORBELL_PROCESSES", "-1"), ("", "")],
            [("DOORBELL_PROCESSES", "0"), ("", "")],
            [("DOORBELL_PROCESSES", "1000000000"), ("", "")],
            [("DOORBELL_THREADS", "0"), ("", "")],
            [("DOORBELL_THREADS", "4097"), ("", "")],
            [("DOORBELL_THREADS", "1000000000"), ("", "")],
            [("DOORBELL_THREADS", "99999999999999999999999"), ("", "")],
            [("DOORBELL_THREADS", "3.5"), ("", "")],
            [("DOORBELL_CARRIER", "pigeon"), ("DOORBELL_THREADS", "1")],
        ];
        for variables in nonsense {
            let set = variables.into_iter().filter(|(name, _)| !name.is_empty());
            let said = ends_well(case("environment").envs(set));
            let (name, value) = variables[0];
            assert!(said.contains(&format!("{name} is `{value}`")), "{variables:?}: {said}");
        }
        // What was mistyped is nearly the key.
        for key in ["xyz", "11112222333344445", "0x1111222233334444"] {
            let set = [("DOORBELL_KEY", key), ("DOORBELL_THREADS", "1")];
            let said = ends_well(case("environment").envs(set));
            let found = format!("DOORBELL_KEY is `{} characters, not shown here`", key.len());
            assert!(said.contains(&found) && !said.contains(key), "{said}");
        }
        for (variables, expected) in [
            ([("DOORBELL_RANK", "0"), ("DOORBELL_THREADS", "2")], "DOORBELL_SIZE is not"),
            ([("DOORBELL_SIZE", "2"), ("DOORBELL_THREADS", "2")], "DOORBELL_RANK is not"),
            ([("DOORBELL_RANK", ""), ("DOORBELL_RENDEZVOUS", "a:1")], "DOORBELL_RANK is not"),
            ([("DOORBELL_RANK", "2"), ("DOORBELL_ADDRESSES", "shm:a/0,shm:a/1")], "rank 2 is not"),
            ([("DOORBELL_RANK", "0"), ("DOORBELL_ADDRESSES", "carrier:pigeon")], "can't open"),
            (
                [("DOORBELL_RANK", "0"), ("DOORBELL_ADDRESSES", "udp:127.0.0.1:0,")],
                "address of process 1, of 2, is empty",
            ),
            (
                [("DOORBELL_RANK", "1"), ("DOORBELL_ADDRESSES", ",udp:127.0.0.1:0")],
                "address of process 0, of 2, is empty",
            ),
            ([("DOORBELL_THREADS", "2"), ("DOORBELL_DEVICE", "pigeon:0")], "can't open pigeon:0"),
        ] {
            let said = ends_well(case("environment").envs(variables));
            assert!(said.contains(expected), "{variables:?}: {said}");
        }
    }),
    // Variables that were no text counted as not set.
    ("variables_that_are_no_text_are_named", || {
        let no_text = OsStr::from_bytes(b"two\xFF");
        for name in [
            "DOORBELL_THREADS",
            "DOORBELL_PROCESSES",
            "DOORBELL_RANK",
            "DOORBELL_SIZE",
            "DOORBELL_ADDRESSES",
            "DOORBELL_RENDEZVOUS",
            "DOORBELL_DEVICE",
            "DOORBELL_CARRIER",
            "DOORBELL_STALL",
            "PMI_FD",
            "PMI_RANK",
            "SLURM_PROCID",
            "OMPI_COMM_WORLD_RANK",
        ] {
            let said = ends_well(case("environment").env(name, no_text));
            let expected = format!("{name} is `two\u{FFFD}`: it must be text in UTF-8");
            assert!(said.contains(&expected), "{name}: {said}");
        }
        // What was garbled is nearly the secret.
        for name in ["DOORBELL_SECRET", "DOORBELL_KEY"] {
            let said = ends_well(case("environment").env(name, no_text));
            let expected = format!("{name} is `4 bytes, not shown here`: it must be text in UTF-8");
            assert!(said.contains(&expected) && !said.contains("two"), "{name}: {said}");
        }
    }),
    // It counted as none, and whoever reached the port could take part.
    ("an_empty_secret_is_an_error_that_names_the_variable", || {
        let port = free_addresses(1);
        let (_, port) = port.rsplit_once(':').expect("an address has a port");
        for name in ["DOORBELL_SECRET", "DOORBELL_SECRET_FILE"] {
            let mut alone = case("environment");
            alone.env("DOORBELL_RANK", "0").env("DOORBELL_SIZE", "1").env(name, "");
            alone.env("DOORBELL_RENDEZVOUS", format!("127.0.0.1:{port}"));
            let said = ends_well(&mut alone);
            assert!(said.contains(&format!("{name} is ``: ")), "{said}");
        }
    }),
    // The second attempt asked the launcher for a place again.
    ("a_second_job_of_a_launcher_is_refused", || {
        let port = free_addresses(1);
        let (_, port) = port.rsplit_once(':').expect("an address has a port");
        let mut twice = case("twice");
        twice.env("DOORBELL_RANK", "0").env("DOORBELL_SIZE", "1");
        twice.env("DOORBELL_SECRET", "a secret that was drawn");
        twice.env("DOORBELL_RENDEZVOUS", format!("127.0.0.1:{port}"));
        let said = ends_well(&mut twice);
        assert!(said.starts_with("returned 1\n"), "{said}");
        assert!(said.contains("process 0, which Doorbell has started, has run the job"), "{said}");
    }),
    // `Debug` was that of the fields, which says nothing to a user.
    ("main_that_returns_the_error_of_a_job_prints_what_it_says", || {
        let output = case("main").stderr(Stdio::piped()).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).expect("text");
        let rest = said.strip_prefix("Error: process ").and_then(|rest| rest.get(1..));
        assert_eq!(rest, Some(": reading the ninth: there is no element 9: the array has 4\n"));
    }),
    ("a_job_without_a_secret_is_warned_of_on_standard_error", || {
        let port = free_addresses(1);
        let (_, port) = port.rsplit_once(':').expect("an address has a port");
        let mut alone = case("environment");
        alone.env("DOORBELL_RANK", "0").env("DOORBELL_SIZE", "1");
        alone.env("DOORBELL_RENDEZVOUS", format!("127.0.0.1:{port}"));
        let said = |command: &mut Command| {
            let output = command.stderr(Stdio::piped()).output().expect("the program runs");
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stderr).expect("text")
        };
        let without = said(&mut alone);
        assert!(without.contains("doorbell: this job of Doorbell has no secret"), "{without}");
        assert!(!said(alone.env("DOORBELL_SECRET", "a secret that was drawn")).contains("secret"));
    }),
    ("members_meet_over_udp_by_their_addresses", || {
        let addresses = free_addresses(3);
        let members: Vec<_> = (0..3)
            .rev()
            .map(|rank| {
                let mut member = case("environment");
                member.env("DOORBELL_RANK", rank.to_string()).env("DOORBELL_ADDRESSES", &addresses);
                Watched::start(member.env("DOORBELL_KEY", "c0ffee"))
            })
            .collect();
        for member in members {
            let said = member.ends_well();
            assert!(said.contains("rank of 3") && said.contains("returned"), "{said}");
        }
    }),
    ("a_member_with_another_key_is_no_member", || {
        let addresses = free_addresses(2);
        let joins = &|rank: usize| {
            let start = Duration::from_secs(2);
            let config = Config { key: rank as u64, start, ..config() };
            Job::member(rank, addresses.split(',')).config(config).run(async |_| Ok(()))
        };
        std::thread::scope(|scope| {
            let members = [0, 1].map(|rank| scope.spawn(move || joins(rank)));
            for member in members {
                let ended = member.join().expect("no panic");
                assert!(matches!(ended, Err(RunError::Join { .. })), "{ended:?}");
            }
        });
    }),
];

/// The command that runs a case.
fn case(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this is a program"));
    command.arg(format!("{CASE}{name}")).env_remove("DOORBELL_THOROUGH");
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// A case that runs, which is killed if it is not waited for.
struct Watched(Child);

impl Watched {
    fn start(command: &mut Command) -> Self {
        Self(command.spawn().expect("it can be started"))
    }

    /// The next line that the case says.
    fn line(&mut self) -> String {
        let said = self.0.stdout.as_mut().expect("it is piped");
        let mut line = String::new();
        // One byte at a time, so that nothing that follows is taken along.
        let mut byte = [0];
        while said.read(&mut byte).expect("it says text") == 1 && byte[0] != b'\n' {
            line.push(char::from(byte[0]));
        }
        line
    }

    /// Waits for the end of the case, which is to be a good one and soon, and returns what it said.
    fn ends_well(mut self) -> String {
        let said = BufReader::new(self.0.stdout.take().expect("it is piped"));
        let reads = std::thread::spawn(move || {
            said.lines().map(|line| line.expect("it says text") + "\n").collect::<String>()
        });
        let ended = until(|| self.0.try_wait().expect("it is a child"));
        let said = reads.join().expect("no panic");
        assert!(ended.success(), "{ended}: {said}");
        said
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Both fail if it has ended and was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn ends_well(command: &mut Command) -> String {
    Watched::start(command).ends_well()
}

/// Looks again and again for something that is soon there.
#[track_caller]
fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The processes whose numbers were said.
fn pids(said: &str) -> Vec<u32> {
    let numbers = said.lines().filter_map(|line| line.strip_prefix("pid "));
    numbers.map(|number| number.parse().expect("a number")).collect()
}

/// Waits until a process has ended: one that nobody has waited for counts, too.
fn is_gone(pid: u32) {
    until(|| {
        let status = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
        status.map_or(true, |status| status.contains(") Z ")).then_some(())
    });
}

/// Addresses of this machine that nobody has for now.
fn free_addresses(count: usize) -> String {
    let bound: Vec<_> =
        (0..count).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port is free")).collect();
    let names =
        bound.iter().map(|socket| format!("udp:{}", socket.local_addr().expect("it is bound")));
    names.collect::<Vec<_>>().join(",")
}
