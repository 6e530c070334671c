//! Processes meet, or learn why they do not. Each is a thread with an environment of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use doorbell_job::{Environment, JobError, MOST_TEXT, Members, Place, Service, Standing, Terms};
use doorbell_kit::effort;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// The secret of the jobs.
const SECRET: &str = "a secret that was drawn";

/// The environment of a process, by its rank, of a job that somebody else serves.
fn environment(rank: usize, size: usize, port: u16, secret: &str) -> Environment {
    let variables = [
        ("DOORBELL_RANK", rank.to_string()),
        ("DOORBELL_SIZE", size.to_string()),
        ("DOORBELL_RENDEZVOUS", format!("127.0.0.1:{port},served")),
        ("DOORBELL_SECRET", secret.to_owned()),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn service(size: usize, within: Duration) -> Service {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let secret = SECRET.into();
    Service::start(listener, Terms { size, secret, within }).expect("threads are to be had")
}

/// Lets a process meet the others, and reports how that went.
fn meets(environment: Environment, within: Duration) -> Result<Members, JobError> {
    let place = Place::find_in(&environment, within)?.expect("it is in a job");
    place.meet()
}

/// Lets the two processes of a job meet, and end.
fn both_meet_and_finish(port: u16) {
    thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || {
                let members = meets(environment(rank, 2, port, SECRET), LONG);
                members.expect("both come").finish().expect("both finish");
            });
        }
    });
}

#[test]
fn all_processes_learn_the_addresses_of_all_and_end_together() {
    const SIZE: usize = 9;
    let service = service(SIZE, LONG);
    let port = service.address().port();
    let keys: Vec<u64> = thread::scope(|scope| {
        let all: Vec<_> = (0..SIZE)
            .map(|rank| {
                scope.spawn(move || {
                    let members = meets(environment(rank, SIZE, port, SECRET), LONG);
                    let members = members.expect("all come");
                    assert_eq!(members.rank(), rank);
                    assert!(members.are_on_one_machine());
                    for round in 0..3 {
                        let all = members.exchange(&format!("{rank} in {round}"));
                        let expected: Vec<_> =
                            (0..SIZE).map(|of| format!("{of} in {round}")).collect();
                        assert_eq!(all.expect("all tell"), expected);
                    }
                    let key = members.key();
                    members.finish().expect("all finish");
                    key
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().expect("none panics")).collect()
    });
    assert!(keys[0] != 0 && keys.iter().all(|&key| key == keys[0]));
}

#[test]
fn process_0_serves_the_others_where_nobody_else_does() {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.expect("a port is free").port();
    thread::scope(|scope| {
        // The others come first, and wait for process 0.
        for rank in [1, 2, 0] {
            let variables = [
                ("DOORBELL_RANK", rank.to_string()),
                ("DOORBELL_SIZE", "3".to_owned()),
                ("DOORBELL_RENDEZVOUS", format!("localhost:{port}")),
            ];
            let own = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
            let own: Environment = own.collect();
            scope.spawn(move || {
                let members = meets(own, LONG).expect("all come");
                assert_eq!(members.cards().len(), 3);
                members.finish().expect("all finish");
            });
        }
    });
}

#[test]
fn a_process_that_does_not_come_is_named_to_all_others() {
    const SHORT: Duration = Duration::from_millis(300);
    let service = service(4, SHORT);
    let port = service.address().port();
    thread::scope(|scope| {
        for rank in [0, 2] {
            scope.spawn(move || {
                let why = meets(environment(rank, 4, port, SECRET), SHORT).unwrap_err();
                let text = why.to_string();
                assert!(matches!(why, JobError::Refused { .. }), "{text}");
                assert!(
                    text.contains("2 of 4 processes have not come within 300ms: 1, 3"),
                    "{text}"
                );
            });
        }
    });
}

#[test]
fn a_process_with_another_secret_is_refused_and_the_others_hear_of_it() {
    const SHORT: Duration = Duration::from_millis(500);
    let service = service(2, SHORT);
    let port = service.address().port();
    thread::scope(|scope| {
        scope.spawn(move || {
            let why = meets(environment(0, 2, port, SECRET), SHORT).unwrap_err().to_string();
            assert!(why.contains("1 of 2 processes have not come"), "{why}");
            assert!(why.contains("process 1 at 127.0.0.1:"), "{why}");
            assert!(why.contains("came with another secret"), "{why}");
        });
        scope.spawn(move || {
            let why = meets(environment(1, 2, port, "another that was drawn"), SHORT).unwrap_err();
            let text = why.to_string();
            assert!(matches!(why, JobError::NoRendezvous { .. }), "{text}");
            assert!(text.contains("secrets differ"), "{text}");
        });
    });
}

#[test]
fn a_process_that_counts_others_differently_ends_the_job_for_all() {
    let service = service(3, LONG);
    let port = service.address().port();
    thread::scope(|scope| {
        let whys: Vec<_> = [(0, 3), (1, 5)]
            .map(|(rank, size)| {
                scope.spawn(move || {
                    meets(environment(rank, size, port, SECRET), LONG).unwrap_err().to_string()
                })
            })
            .into_iter()
            .map(|one| one.join().expect("none panics"))
            .collect();
        for why in whys {
            assert!(why.contains("the job has 5 processes"), "{why}");
        }
    });
}

#[test]
fn the_second_of_two_processes_with_one_rank_is_refused_and_the_first_goes_on() {
    let service = service(2, LONG);
    let port = service.address().port();
    thread::scope(|scope| {
        let twice: Vec<_> = (0..2)
            .map(|_| scope.spawn(move || meets(environment(0, 2, port, SECRET), LONG)))
            .collect();
        // One of the two ends before the other process comes.
        while !twice.iter().any(thread::ScopedJoinHandle::is_finished) {
            thread::yield_now();
        }
        let other = scope.spawn(move || meets(environment(1, 2, port, SECRET), LONG));
        let mut came = 0;
        for one in twice {
            match one.join().expect("none panics") {
                Ok(_) => came += 1,
                Err(why) => {
                    let why = why.to_string();
                    assert!(why.contains("process 0 has come already, from 127.0.0.1"), "{why}");
                }
            }
        }
        assert_eq!(came, 1);
        assert!(other.join().expect("it does not panic").is_ok());
    });
}

#[test]
fn the_end_of_a_process_is_told_to_the_others_at_once() {
    let service = service(3, LONG);
    let port = service.address().port();
    thread::scope(|scope| {
        for rank in 0..3 {
            scope.spawn(move || {
                let (told, hears) = mpsc::channel();
                let place = Place::find_in(&environment(rank, 3, port, SECRET), LONG);
                let place = place.expect("it makes sense").expect("it is in a job");
                let members = place.meet_and_watch(move |who| _ = told.send(who));
                let members = members.expect("all come");
                if rank == 1 {
                    return; // without a word
                }
                assert_eq!(hears.recv_timeout(LONG), Ok(Some(1)));
                let why = members.exchange("").unwrap_err();
                assert!(matches!(why, JobError::Ended { rank: 1 }), "{why}");
                let why = members.finish().unwrap_err();
                assert!(matches!(why, JobError::Ended { rank: 1 }), "{why}");
            });
        }
    });
}

#[test]
fn strangers_who_send_anything_hold_up_nobody() {
    let service = service(2, LONG);
    let port = service.address().port();
    let mut strangers = Vec::new();
    for words in [
        &b""[..],
        b"GET / HTTP/1.1\r\n\r\n",
        b"doorbell-job 5 0 2 a\ncard wrong =\n",
        b"doorbell-job 9 0 2 a\n",
        b"doorbell-job 5 99999999999999999999 2 a\n",
        &[0xff; 5000],
    ] {
        let mut stranger = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        stranger.write_all(words).expect("it is taken");
        strangers.push(stranger);
    }
    both_meet_and_finish(port);
}

#[test]
fn a_process_that_was_cut_off_in_the_midst_of_its_proof_is_no_stranger() {
    const SHORT: Duration = Duration::from_millis(500);
    let service = service(2, SHORT);
    let port = service.address().port();
    let mut cut_off = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    cut_off.write_all(b"doorbell-job 5 0 2 a\n").expect("it is taken");
    let mut answer = BufReader::new(cut_off);
    answer.read_line(&mut String::new()).expect("the service proves itself");
    drop(answer);
    let why = meets(environment(0, 2, port, SECRET), SHORT).unwrap_err().to_string();
    assert!(why.contains("1 of 2 processes have not come within 500ms: 1"), "{why}");
    assert!(!why.contains("another secret"), "{why}");
}

#[test]
fn hundreds_of_connections_that_say_nothing_hold_up_nobody() {
    let service = service(2, LONG);
    let port = service.address().port();
    let connect = |_| TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
    let _silent: Vec<_> = (0..300).map(connect).collect();
    both_meet_and_finish(port);
}

#[test]
fn a_text_may_be_as_long_as_is_said_and_no_longer() {
    let service = service(2, LONG);
    let port = service.address().port();
    thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || {
                let members = meets(environment(rank, 2, port, SECRET), LONG);
                let members = members.expect("both come");
                let longest = "%".repeat(MOST_TEXT);
                let why = members.exchange(&format!("{longest}%")).unwrap_err();
                assert!(matches!(why, JobError::TooLong { .. }), "{why}");
                assert_eq!(members.exchange(&longest).expect("both tell"), [&*longest, &*longest]);
                members.finish().expect("both finish");
            });
        }
    });
}

/// A process that had returned too early named one that had ended because of it, and the others
/// named that one, too.
#[test]
fn of_processes_that_name_each_other_the_one_that_was_named_first_is_told_to_all() {
    let service = service(3, LONG);
    let port = service.address().port();
    thread::scope(|scope| {
        for rank in 0..3 {
            scope.spawn(move || {
                let members = meets(environment(rank, 3, port, SECRET), LONG);
                let members = members.expect("all come");
                if rank == 2 {
                    members.ends_after(1);
                }
                // What process 2 has said has been heard when all have exchanged something.
                members.exchange("").expect("all do");
                let other = if rank == 2 { 1 } else { 2 };
                assert_eq!(members.first_ended(other), Some(1), "process {rank}");
                // None is to end before the others have heard.
                members.exchange("").expect("all do");
            });
        }
    });
    assert_eq!(service.first_ended(), Some(1));
}

/// Of one that has failed because of another, others said that it had ended before the service had
/// read whom it had named.
#[test]
fn who_has_been_named_is_noted_before_others_can_see_that_process_end() {
    for round in 0..effort(50, 500) {
        let service = service(3, LONG);
        let port = service.address().port();
        let ends = std::sync::Barrier::new(3);
        thread::scope(|scope| {
            for rank in 0..3 {
                let ends = &ends;
                scope.spawn(move || {
                    let members = meets(environment(rank, 3, port, SECRET), LONG);
                    let members = members.expect("all come");
                    if rank == 2 {
                        members.ends_after(1);
                    }
                    ends.wait();
                    let other = if rank == 2 { 1 } else { 2 };
                    let first = members.first_ended(other);
                    assert_eq!(first, Some(1), "process {rank}, round {round}");
                    ends.wait();
                });
            }
        });
    }
}

#[test]
fn whoever_starts_a_job_learns_which_process_failed_first() {
    let service = service(4, LONG);
    let port = service.address().port();
    assert_eq!(service.standing(0), Standing::Absent);
    thread::scope(|scope| {
        for rank in 0..4 {
            scope.spawn(move || {
                let members = meets(environment(rank, 4, port, SECRET), LONG);
                let members = members.expect("all come");
                match rank {
                    0 => assert!(matches!(members.finish(), Err(JobError::Ended { rank: 2 }))),
                    1 => {
                        let why = members.exchange("").unwrap_err();
                        assert!(matches!(why, JobError::Ended { rank: 2 }), "{why}");
                        members.ends_after(2);
                    }
                    2 => {} // without a word
                    _ => {
                        members.exchange("").unwrap_err();
                        // That process 9 has ended can't be: there is none.
                        members.ends_after(9);
                    }
                }
            });
        }
    });
    // The service hears of the last ends after the processes themselves have ended.
    let after = |rank| loop {
        if let Standing::Ended { after } = service.standing(rank) {
            break after;
        }
        thread::yield_now();
    };
    assert_eq!([0, 1, 2, 3].map(after), [Some(2), Some(2), None, None]);
    assert_eq!(service.first_ended(), Some(2));
}

#[test]
fn the_environment_says_how_long_all_may_take() {
    let variables = [
        ("DOORBELL_RANK", "0"),
        ("DOORBELL_SIZE", "2"),
        ("DOORBELL_RENDEZVOUS", "localhost:1,served"),
        ("DOORBELL_SECRET", SECRET),
    ];
    let environment = |within: &'static str| {
        let all = variables.into_iter().chain([("DOORBELL_WITHIN", within)]);
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let why = meets(environment("1"), LONG).unwrap_err().to_string();
    assert!(why.contains("has not found the rendezvous at localhost:1 within 1s"), "{why}");
    let why = meets(environment("soon"), LONG).unwrap_err().to_string();
    assert!(why.contains("DOORBELL_WITHIN is `soon`: a decimal number of seconds"), "{why}");
}

#[test]
fn a_blank_secret_is_none() {
    let why = meets(environment(0, 2, 1, " "), LONG).unwrap_err().to_string();
    assert!(why.contains("DOORBELL_SECRET is ` `: a text that is not blank"), "{why}");
}

/// The secret could be found by trying, by whoever had asked the rendezvous for its proof.
#[test]
fn a_secret_that_is_too_short_to_be_random_is_refused_by_the_name_of_where_it_is() {
    let why = meets(environment(0, 2, 1, "s3cr3t"), LONG).unwrap_err();
    assert!(matches!(why, JobError::WeakSecret { found: 6, least: 16, .. }), "{why}");
    assert!(why.to_string().contains("DOORBELL_SECRET has 6 characters"), "{why}");
    let path = std::env::temp_dir().join(format!("doorbell-weak-secret-{}", std::process::id()));
    std::fs::write(&path, "s3cr3t\n").expect("a file");
    let mut environment: Vec<_> = [("DOORBELL_RANK", "0"), ("DOORBELL_SIZE", "2")].into();
    let file = path.display().to_string();
    environment.extend([("DOORBELL_RENDEZVOUS", "localhost:1"), ("DOORBELL_SECRET_FILE", &file)]);
    let owned = environment.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let why = meets(owned.collect(), LONG).unwrap_err().to_string();
    std::fs::remove_file(&path).expect("it is there");
    for said in [file.as_str(), "has 6 characters", "/dev/urandom"] {
        assert!(why.contains(said), "{why}");
    }
    assert!(!why.contains("s3cr3t"), "{why}");
}

/// Answers as a launcher does, with the messages that were recorded: Hydra's, or Slurm's.
fn launcher(streams: Vec<UnixStream>, slurm: bool) {
    let size = streams.len();
    let table = std::sync::Mutex::new(Vec::<(String, String)>::new());
    let barrier = std::sync::Barrier::new(size);
    thread::scope(|scope| {
        for stream in streams {
            let (table, barrier) = (&table, &barrier);
            scope.spawn(move || {
                let mut writer = stream.try_clone().expect("a descriptor");
                for line in BufReader::new(stream).lines() {
                    let line = line.expect("text");
                    let word = |key: &str| {
                        let all = line.split(' ').filter_map(|word| word.split_once('='));
                        all.filter(|(name, _)| *name == key).map(|(_, value)| value).next()
                    };
                    let answer = match word("cmd").expect("a command") {
                        "init" if slurm => {
                            "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1".to_owned()
                        }
                        "init" => {
                            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned()
                        }
                        "get_maxes" if slurm => {
                            "cmd=maxes rc=0 kvsname_max=256 keylen_max=256 vallen_max=256"
                                .to_owned()
                        }
                        "get_maxes" => {
                            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024".to_owned()
                        }
                        "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_1_0".to_owned(),
                        "put" => {
                            let [key, value] = ["key", "value"].map(|key| word(key).expect("it"));
                            table.lock().expect("no panic").push((key.into(), value.into()));
                            "cmd=put_result rc=0 msg=success".to_owned()
                        }
                        "barrier_in" => {
                            barrier.wait();
                            "cmd=barrier_out".to_owned()
                        }
                        "get" => {
                            let key = word("key").expect("a key");
                            let table = table.lock().expect("no panic");
                            let value = table.iter().find(|(name, _)| name == key);
                            let (_, value) = value.expect("it was put");
                            format!("cmd=get_result rc=0 msg=success value={value}")
                        }
                        "finalize" => "cmd=finalize_ack".to_owned(),
                        other => panic!("{other}"),
                    };
                    writeln!(writer, "{answer}").expect("it is taken");
                }
            });
        }
    });
}

#[test]
fn processes_that_a_launcher_with_pmi_has_started_meet_by_it() {
    for slurm in [false, true] {
        let (ours, theirs): (Vec<_>, Vec<_>) =
            (0..4).map(|_| UnixStream::pair().expect("descriptors")).unzip();
        thread::scope(|scope| {
            scope.spawn(move || launcher(theirs, slurm));
            for (rank, own) in ours.into_iter().enumerate() {
                scope.spawn(move || {
                    let size = if slurm { "SLURM_NTASKS" } else { "PMI_SIZE" };
                    let variables = [("PMI_RANK", rank.to_string()), (size, "4".to_owned())];
                    let owned = variables.into_iter().map(|(name, value)| (name.to_owned(), value));
                    let environment = Environment::from_iter(owned).with_launcher(own);
                    let members = meets(environment, LONG).expect("all come");
                    let all = members.exchange(&rank.to_string()).expect("all tell");
                    assert_eq!(all, ["0", "1", "2", "3"]);
                    members.finish().expect("all finish");
                });
            }
        });
    }
}

#[test]
fn a_launcher_that_answers_nonsense_is_quoted() {
    let (own, mut other) = UnixStream::pair().expect("descriptors");
    let answers = thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(other.try_clone().expect("a descriptor"))
            .read_line(&mut line)
            .expect("text");
        other.write_all(b"cmd=response_to_init rc=1 nonsense=yes\n").expect("it is taken");
    });
    let variables = [("PMI_RANK", "0"), ("PMI_SIZE", "1")];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = Environment::from_iter(variables).with_launcher(own);
    let why = meets(environment, LONG).unwrap_err().to_string();
    assert!(why.contains("nonsense=yes") && why.contains("cmd=init"), "{why}");
    answers.join().expect("it does not panic");
}

/// The environment of process 0 or 1 of a job of two, which looks for the service at two ports.
fn environment_at(rank: usize, ports: [u16; 2]) -> Environment {
    let [first, second] = ports.map(|port| format!("127.0.0.1:{port}"));
    let variables = [
        ("DOORBELL_RANK", rank.to_string()),
        ("DOORBELL_SIZE", "2".to_owned()),
        ("DOORBELL_RENDEZVOUS", format!("{first},{second},served")),
        ("DOORBELL_SECRET", SECRET.to_owned()),
    ];
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Lets the two processes of a job meet that look at another port first, and end.
fn both_meet_behind(first: u16, service: &Service) {
    let ports = [first, service.address().port()];
    thread::scope(|scope| {
        for rank in 0..2 {
            scope.spawn(move || {
                let members = meets(environment_at(rank, ports), LONG);
                members.expect("both come").finish().expect("both finish");
            });
        }
    });
}

/// Each byte that came gave the one who sent it as long again as all of a line might take.
#[test]
fn somebody_at_the_first_port_who_answers_one_byte_at_a_time_does_not_keep_a_process_there() {
    let service = service(2, LONG);
    let slow = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = slow.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for stream in slow.incoming() {
            let mut stream = stream.expect("somebody comes");
            thread::spawn(move || {
                while stream.write_all(b"n").is_ok() {
                    thread::sleep(Duration::from_millis(100));
                }
            });
        }
    });
    both_meet_behind(port, &service);
}

/// A relay at the first of a job's ports was taken for the service, since the service's proof said
/// nothing of the port. The relay heard, and could have changed, everything that followed.
#[test]
fn somebody_at_the_first_port_who_passes_the_proof_of_the_service_on_is_not_taken_for_it() {
    let service = service(2, LONG);
    let real = service.address();
    let relay = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = relay.local_addr().expect("it is bound").port();
    let (hears, heard) = mpsc::channel();
    thread::spawn(move || {
        for stream in relay.incoming() {
            let (process, hears) = (stream.expect("somebody comes"), hears.clone());
            let to = TcpStream::connect(real).expect("the service is there");
            let (mut back, mut from) = (process.try_clone().unwrap(), to.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut from, &mut back));
            thread::spawn(move || {
                for line in BufReader::new(process).lines().map_while(Result::ok) {
                    let _ = writeln!(&to, "{line}");
                    let _ = hears.send(line);
                }
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    });
    both_meet_behind(port, &service);
    let heard: Vec<_> = heard.try_iter().collect();
    assert!(heard.iter().any(|line| line.starts_with("doorbell-job ")), "{heard:?}");
    assert!(!heard.iter().any(|line| line.starts_with("card ")), "{heard:?}");
}

/// Process 0, which serves the others, has ended, and that was told as the end of a service.
#[test]
fn where_process_0_serves_the_others_its_end_is_that_of_process_0() {
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        free.local_addr().expect("it is bound").port()
    };
    let at = format!("127.0.0.1:{port}");
    let own = |rank: usize| -> Environment {
        let variables = [
            ("DOORBELL_RANK", rank.to_string()),
            ("DOORBELL_SIZE", "2".to_owned()),
            ("DOORBELL_RENDEZVOUS", at.clone()),
            ("DOORBELL_SECRET", "a secret that was drawn".to_owned()),
        ];
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| drop(meets(own(0), LONG).expect("both come")));
        let members = meets(own(1), LONG).expect("both come");
        first.join().expect("no panic");
        assert_eq!(members.first_ended(0), Some(0));
    });
}
