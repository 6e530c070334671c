//! Other users of the machine: what they pass, and the names that they take first.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

use doorbell_core::encap::PathId;
use doorbell_kit::{child, limit_descriptors, stranger};
use doorbell_transports::shm::Shm;
use doorbell_transports::{Address, Device, DeviceError};

use crate::shm::common::*;
use crate::shm::liar::*;

/// A socket whose close waits for an hour, unless the other end, which comes second, reads all that
/// was sent.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut sender = TcpStream::connect(listener.local_addr().expect("its port")).expect("there");
    let (receiver, _) = listener.accept().expect("it has connected");
    let linger = libc::linger { l_onoff: 1, l_linger: 3600 };
    let (fd, len) = (sender.as_raw_fd(), size_of_val(&linger) as u32);
    // SAFETY: the kernel reads a live structure of the size that it is told.
    ok(unsafe {
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), len)
    });
    sender.set_nonblocking(true).expect("a socket");
    while sender.write(&[0; 64 << 10]).is_ok() {}
    (sender, receiver)
}

/// A device's thread, which answers each packet with the same until `friend` leaves.
struct Answering {
    friend: Shm,
    link: PathId,
    sent: u32,
    /// The device takes its turns while nobody else holds this.
    turns: Arc<Mutex<()>>,
    thread: JoinHandle<Shm>,
}

impl Answering {
    fn new(mut device: Shm) -> Self {
        let mut friend = Shm::join(&name("friend")).expect("a name");
        let link = reach(&mut friend, &mut device);
        let back = reach(&mut device, &mut friend);
        let turns = Arc::new(Mutex::new(()));
        let takes = turns.clone();
        let thread = std::thread::spawn(move || {
            let mut heard = Heard::default();
            while !heard.gone.contains(&back) {
                let turns = takes.lock();
                for _ in 0..100 {
                    turn(&mut device, &mut heard);
                    for (_, number, payload) in heard.packets.drain(..) {
                        send(&mut device, back, number, &payload);
                    }
                }
                drop(turns);
                // Whoever wants the lock is to get it.
                std::thread::yield_now();
            }
            device
        });
        Self { friend, link, sent: 0, turns, thread }
    }

    /// Asks something, and waits for the answer.
    #[track_caller]
    fn ping(&mut self) {
        let mut heard = Heard::default();
        self.sent += 1;
        send(&mut self.friend, self.link, self.sent, b"ping");
        until(|| turn(&mut self.friend, &mut heard) > 0);
        assert_eq!(heard.packets, [(self.link, self.sent, b"ping".to_vec())]);
    }

    /// The device, when its thread has ended.
    fn end(self) -> Shm {
        drop(self.friend);
        self.thread.join().expect("no panic")
    }
}

/// Has a device take no turn for as long as what is returned lives.
#[track_caller]
fn pause(turns: &Mutex<()>) -> MutexGuard<'_, ()> {
    doorbell_kit::until("the end of a turn", || turns.try_lock().ok())
}

/// How often a socket that lingers is passed, and how many connections wait for a device at once.
const HUNDREDS: usize = 300;
const AT_ONCE: usize = 100;

/// Passes a socket that lingers to a device, in so many connections. Returns how many could be
/// passed, for the kernel may refuse; the connections; and what keeps the closes waiting.
fn pass_to(device: &str, connections: usize) -> (usize, Vec<Liar>, Vec<TcpStream>) {
    let (mut passed, mut liars, mut unread) = (0, Vec::new(), Vec::new());
    for _ in 0..connections {
        let (sender, receiver) = lingering();
        let liar = Liar::call(device);
        match liar.passes(b"\x09", &[sender.as_fd()]) {
            Ok(()) => passed += 1,
            // To close it here would take the hour. The end of this process closes it at once.
            Err(_) => std::mem::forget(sender),
        }
        liars.push(liar);
        unread.push(receiver);
    }
    (passed, liars, unread)
}

/// The device's own thread closed what came with a message: a turn took 10.2 s where the socket's
/// close waited so long, and nobody who was linked to the device was served meanwhile.
#[test]
fn descriptors_that_another_user_passes_hold_up_no_turn() {
    const TEST: &str = "shm::strangers::descriptors_that_another_user_passes_hold_up_no_turn";
    if child::part().is_some() {
        let (device, mut all) = (child::listen().expect("the parent says which"), Vec::new());
        while let Some(connections) = child::listen() {
            let connections = connections.parse().expect("a number");
            let (passed, liars, unread) = pass_to(&device, connections);
            child::tell(format!("{passed} of {connections}"));
            liars.iter().for_each(|liar| assert!(liar.is_hung_up_on()));
            child::tell("hung up");
            all.push((liars, unread));
        }
        return;
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let device = Shm::join(&name("honest")).expect("a name");
    stranger.say(named(&device));
    let mut device = Answering::new(device);
    for connections in [1].into_iter().chain([AT_ONCE; HUNDREDS / AT_ONCE]) {
        // The device comes to it when the stranger has closed its own descriptors: it is the last
        // to close them then, and that can't end, since nobody reads what was sent.
        let turns = device.turns.clone();
        let turns = pause(&turns);
        stranger.say(connections);
        eprintln!("passed: {}", stranger.hear());
        drop(turns);
        assert_eq!(stranger.hear(), "hung up");
        device.ping();
    }
    drop(stranger);
    assert!(device.end().statistics().strangers > HUNDREDS as u64);
}

/// The ways in which somebody whom a device trusts may pass what it does not want: with a hello,
/// as memory, beside memory, and behind something that ends the link.
fn wrongly_passed(device: &str, way: usize, turns: &Mutex<()>) -> TcpStream {
    let (sender, receiver) = lingering();
    let hello = [&HELLO[..], &LINES.to_le_bytes(), name("liar").as_bytes()].concat();
    let grant = [&[4][..], &1u128.to_le_bytes(), &64u64.to_le_bytes()].concat();
    let liar = if way > 0 {
        let liar = Liar::call(device);
        liar.say(&hello, None);
        assert_eq!(liar.hear().0[..2], [2, 0]);
        Some(liar)
    } else {
        None
    };
    // The device comes to it when it alone has the socket.
    let _turns = pause(turns);
    let liar = liar.unwrap_or_else(|| Liar::call(device));
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    let memory = memory(64, seals);
    let fds = [memory.as_fd(), sender.as_fd()];
    let passed = match way {
        0 => liar.passes(&hello, &fds[1..]),
        1 => liar.passes(&grant, &fds[1..]),
        2 => liar.passes(&grant, &fds),
        _ => liar.passes(&[9], &[]).and_then(|()| liar.passes(&grant, &fds[1..])),
    };
    match passed {
        Ok(()) => drop(sender),
        // Before the device has seen who calls, the kernel refuses to pass anything; and to close
        // it here would take the hour.
        Err(_) if way == 0 => std::mem::forget(sender),
        Err(why) => panic!("{why}"),
    }
    receiver
}

/// As [`descriptors_that_another_user_passes_hold_up_no_turn`], by a mistake of this user's own.
#[test]
fn descriptors_of_the_wrong_kind_hold_up_no_turn() {
    let device = Shm::join(&name("honest")).expect("a name");
    let called = named(&device);
    let mut device = Answering::new(device);
    let mut unread = Vec::new();
    for way in 0..4 {
        for _ in 0..HUNDREDS / 4 {
            unread.push(wrongly_passed(&called, way, &device.turns));
            device.ping();
        }
    }
    device.end();
}

/// The name of a device, to be told to others.
fn address(name: &str) -> Address {
    Address::Shm(name.into())
}

#[test]
fn another_user_is_turned_away_and_is_sent_nothing() {
    const TEST: &str = "shm::strangers::another_user_is_turned_away_and_is_sent_nothing";
    if child::part().is_some() {
        let liar = Liar::call(&child::listen().expect("the parent says which"));
        let hello = [&HELLO[..], &LINES.to_le_bytes(), b"a stranger"].concat();
        // Or it is hung up on before.
        liar.says(&hello, None);
        child::tell("called");
        let (answer, memory) = liar.hear();
        return child::tell(format!("{answer:?} {}", memory.is_some()));
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let mut device = Shm::join(&name("honest")).expect("a name");
    stranger.say(named(&device));
    assert_eq!(stranger.hear(), "called");
    device.reach(&address("nobody at all")).expect_err("nobody");
    assert_eq!(stranger.hear(), "[2, 5] false");
    assert_eq!(device.statistics().strangers, 1);
    stranger.end();
}

/// The error said that a process has the name, and not which process of which user.
#[test]
fn whoever_wants_or_calls_a_name_that_another_user_has_is_told_who_that_is() {
    const TEST: &str =
        "shm::strangers::whoever_wants_or_calls_a_name_that_another_user_has_is_told_who_that_is";
    if child::part().is_some() {
        let held = Shm::join(&child::listen().expect("the parent says which")).expect("a name");
        child::tell(std::process::id());
        child::listen();
        return drop(held);
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let wanted = name("wanted");
    stranger.say(&wanted);
    let user = stranger::user().expect("it runs as that user");
    let who = format!("process {} of user {user}", stranger.hear());
    let taken = Shm::join(&wanted).expect_err("it is taken");
    assert!(matches!(taken, DeviceError::Taken { .. }), "{taken:?}");
    assert!(taken.to_string().contains(&who), "{taken}");
    let mut device = Shm::join(&name("honest")).expect("a name");
    let refused = device.reach(&address(&wanted)).expect_err("it is a stranger's");
    let said = refused.to_string();
    assert!(said.contains(&who) && said.contains("runs as user 0"), "{said}");
    assert_eq!(device.statistics().frames_sent, 0);
}

/// Root's device turned away another user's, who was told that nobody answers, and to see whether
/// the program was running.
#[test]
fn whoever_is_turned_away_as_another_user_is_told_both_users() {
    const TEST: &str = "shm::strangers::whoever_is_turned_away_as_another_user_is_told_both_users";
    if child::part().is_some() {
        let mut device = Shm::join(&name("turned-away")).expect("a name");
        let to = address(&child::listen().expect("the parent says which"));
        let refused = reach_with(&mut device, &to, std::thread::yield_now);
        return child::tell(refused.expect_err("it is root's"));
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let mut device = Shm::join(&name("honest")).expect("a name");
    stranger.say(named(&device));
    let mut heard = Heard::default();
    until(|| {
        // As a sleeper does who wakes, and looks at sockets at once.
        device.arm(None).expect("armed");
        device.disarm();
        turn(&mut device, &mut heard);
        device.statistics().strangers > 0
    });
    let said = stranger.hear();
    let (own, user) = (std::process::id(), stranger::user().expect("it runs as that user"));
    let says = [format!("process {own} of user 0"), format!("runs as user {user}")];
    assert!(says.iter().all(|says| said.contains(says)), "{said}");
    assert!(said.contains("run both as one") && !said.contains("running on"), "{said}");
    stranger.end();
}

/// Of a name to which nobody can connect, only the list of all sockets tells whose it is.
#[test]
fn whoever_wants_a_name_that_another_user_has_and_does_not_listen_by_is_told_who_that_is() {
    const TEST: &str = "shm::strangers::\
        whoever_wants_a_name_that_another_user_has_and_does_not_listen_by_is_told_who_that_is";
    if child::part().is_some() {
        let (deaf, full) = (child::listen().expect("a name"), child::listen().expect("a name"));
        let _deaf = Impostor::deaf(&deaf);
        let full = Impostor::by_name(&full);
        let _calls = full.fill();
        child::tell("taken");
        child::listen();
        return;
    }
    let Some(mut stranger) = stranger::start(TEST, "stranger") else { return };
    let names = ["deaf", "full"].map(name);
    names.iter().for_each(|name| stranger.say(name));
    assert_eq!(stranger.hear(), "taken");
    let who = format!("a process of user {}", stranger::user().expect("it runs as that user"));
    for name in &names {
        let taken = Shm::join(name).expect_err("it is taken").to_string();
        assert!(taken.contains(&who), "{taken}");
    }
    // Whoever calls where nobody is taken in was left to wait for ever.
    let mut device = Shm::join(&name("honest")).expect("a name");
    let refused = reach_with(&mut device, &address(&names[1]), std::thread::yield_now);
    let said = refused.expect_err("nobody is taken in").to_string();
    assert!(said.contains(&who), "{said}");
}

/// Every user without a number in a namespace looks as any other does, and as this process itself
/// where it has none: so strangers were taken for the same user, and sent a link's memory.
#[test]
fn a_user_without_a_number_here_is_a_stranger_although_this_process_has_none_either() {
    const TEST: &str = "shm::strangers::\
        a_user_without_a_number_here_is_a_stranger_although_this_process_has_none_either";
    if child::part().is_some() {
        let mut device = Shm::join(&name("alike")).expect("a name");
        child::tell(named(&device));
        let parents = address(&child::listen().expect("the parent has called"));
        let refused = device.reach(&parents).map_err(|why| why.to_string());
        child::tell(format!("{refused:?}"));
        child::tell(device.statistics().strangers);
        return;
    }
    let Some(mut child) = stranger::start_among_all_alike(TEST, "alike") else { return };
    let device = Shm::join(&name("honest")).expect("a name");
    let liar = Liar::call(&child.hear());
    let hello = [&HELLO[..], &LINES.to_le_bytes(), b"a stranger"].concat();
    liar.say(&hello, None);
    let passed = liar.passes(&hello, &[std::io::stderr().as_fd()]);
    eprintln!("passed a descriptor before it was taken in: {passed:?}");
    child.say(named(&device));
    let refused = child.hear();
    let says = ["a user who has no number here", "run it as a user of its own"];
    assert!(says.iter().all(|says| refused.contains(says)), "{refused}");
    let (answer, memory) = liar.hear();
    assert_eq!((answer, memory.is_some()), (vec![2, 5], false));
    assert_eq!(child.hear(), "1");
    child.end();
}

/// How many descriptors this process has.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("proc").count()
}

/// Each message may have 253.
#[test]
fn a_flood_of_descriptors_is_gone_soon_and_breaks_its_link() {
    child::alone(|| {
        let mut device = Shm::join(&name("honest")).expect("a name");
        let null = std::fs::File::open("/dev/null").expect("a file");
        let fds = [null.as_fd(); 253];
        let before = descriptors();
        for _ in 0..5 {
            let (liar, segment) = Liar::hello(&mut device);
            let grant = [&[4][..], &1u128.to_le_bytes(), &64u64.to_le_bytes()].concat();
            while liar.passes(&grant, &fds).is_ok() {}
            let mut heard = Heard::default();
            until(|| {
                turn(&mut device, &mut heard);
                !heard.gone.is_empty()
            });
            drop((liar, segment));
        }
        until(|| descriptors() <= before);
    });
}

/// The kernel passes as many as there is room for, and says only that there were more.
#[test]
fn memory_for_which_there_is_no_descriptor_takes_its_link_down_and_others_go_on() {
    child::alone(|| {
        let device = Shm::join(&name("honest")).expect("a name");
        let called = named(&device);
        let mut device = Answering::new(device);
        let liar = Liar::call(&called);
        let hello = [&HELLO[..], &LINES.to_le_bytes(), name("liar").as_bytes()].concat();
        liar.say(&hello, None);
        liar.hear();
        let turns = device.turns.clone();
        let turns = pause(&turns);
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        let memory = memory(64, seals);
        let grant = [&[4][..], &1u128.to_le_bytes(), &64u64.to_le_bytes()].concat();
        liar.say(&grant, Some(memory.as_fd()));
        limit_descriptors(256);
        let all: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/dev/null").ok()).collect();
        drop(turns);
        assert!(liar.is_hung_up_on());
        drop(all);
        device.ping();
        assert_eq!(device.end().statistics().broken, 1);
    });
}
