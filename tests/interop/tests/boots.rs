//! The harness itself: a guest comes up, is reached, does what it is told, and is gone.

use std::io::ErrorKind;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use doorbell_interop::{Error, Faults, Guest, GuestConfig, Image, Link, Way, or_pass_over};
use doorbell_kit::lab::{self, Cable};

const SOON: Duration = Duration::from_secs(30);

/// That the interface is there and what it is called is what the rest begins with.
fn shows_its_device(guest: &Guest) {
    let shown = guest.run("ibv_devinfo -d rxe0", SOON).expect("it ends");
    assert!(shown.succeeded() && shown.stdout.contains("PORT_ACTIVE"), "{shown}");
    let python = "python3 -c 'import pyverbs.device as d; print(d.get_device_list()[0].name)'";
    let shown = guest.run(python, SOON).expect("it ends");
    assert!(shown.stdout.contains("rxe0"), "{shown}");
}

fn is_reached_both_ways(cable: &Cable, guest: &Guest) {
    for near in [IpAddr::from(cable.near.ipv4), cable.near.ipv6.into()] {
        // Frames of the largest size, too, there and back.
        for size in [56, 8900] {
            let answer = guest.run(&format!("ping -c 2 -s {size} {near}"), SOON).expect("it ends");
            assert!(answer.succeeded(), "{near}, {size}: {answer}");
        }
    }
    for far in [IpAddr::from(cable.far.ipv4), cable.far.ipv6.into()] {
        // Nobody listens there: the guest's kernel says so, and nobody else could.
        let refused = TcpStream::connect_timeout(&(far, 9).into(), SOON).map(drop);
        assert_eq!(refused.map_err(|why| why.kind()), Err(ErrorKind::ConnectionRefused), "{far}");
    }
}

/// A shell command that lists the processes of a program, named by a regular expression, and
/// succeeds if there are any. A process that has ended and whose parent has not heard of that does
/// not count.
fn runs(program: &str) -> String {
    format!(r"grep -hsE '^[0-9]+ \(({program})\) [^Z]' /proc/[0-9]*/stat")
}

fn several_commands_run_and_are_stopped(guest: &Guest) {
    let forever = guest.start("echo begun; echo aloud >&2; sleep 1000 & wait").expect("it starts");
    forever.says("begun", SOON).expect("it says so");
    forever.says("aloud", SOON).expect("it says so");
    let server = guest.start("ibv_rc_pingpong -g 1 -p 18600").expect("it starts");
    server.listens(18600, SOON).expect("it listens");
    let manager = guest.start("rping -s -p 7175").expect("it starts");
    manager.listens_to_managers(7175, SOON).expect("it listens");
    let none = guest.start("echo unable; exit 3").expect("it starts").listens(9, SOON);
    assert!(matches!(none, Err(Error::Ended { .. })), "{none:?}");
    let programs = ["sleep", "rping", "ibv_rc_pingpong"];
    for program in programs {
        let found = guest.run(&runs(program), SOON).expect("it ends");
        assert!(found.succeeded(), "{program} runs: {found}");
    }
    let stopped = forever.stop(SOON).expect("it ends");
    assert_eq!((stopped.status, stopped.stdout.as_str()), (Some(-9), "begun\n"));
    drop((server, manager));
    // With the commands went what they had started.
    let left = runs(&programs.join("|"));
    guest.until(&format!("! {left}"), SOON).expect("nothing is left of them");
    let late = guest.run("echo so far; exec sleep 1000", Duration::from_millis(1500));
    let Err(Error::Late { output, .. }) = late else { panic!("it can't have ended: {late:?}") };
    assert_eq!((output.status, output.stdout.as_str()), (None, "so far\n"));
    let left = guest.run(&runs("sleep"), SOON).expect("it ends");
    assert_eq!(left.status, Some(1), "who is told that a command is late finds it ended: {left}");
    let status = guest.run("exit 7", SOON).expect("it ends").status;
    assert_eq!(status, Some(7));
    let long = guest.run("head -c 300000 /dev/zero | tr '\\0' x", SOON).expect("it ends");
    assert_eq!(long.stdout.len(), 300_000);
}

/// The guest's own traffic with itself does not go over the link; so nothing of RoCE is there yet.
fn the_link_keeps_a_record_and_leaves_alone_what_is_not_roce(
    link: &Link,
    guest: &Guest,
    near: &str,
) {
    let capture = std::env::temp_dir().join(format!("interop-{}.pcapng", std::process::id()));
    link.record(&capture).expect("it can be made");
    link.faults(Faults { loss: 1.0, ..Faults::NONE }, 1);
    let before = Way::ALL.map(|way| link.counters(way));
    let answer = guest.run(&format!("ping -c 3 -i 0.1 {near}"), SOON).expect("it ends");
    assert!(answer.succeeded(), "{answer}");
    link.faults(Faults::NONE, 1);
    let count = link.stop_recording().expect("it is written");
    let size = std::fs::metadata(&capture).expect("it is there").len();
    std::fs::remove_file(&capture).expect("it can be removed");
    assert!(count >= 6 && size > count * 98, "{count} frames in {size} bytes");
    for (way, before) in Way::ALL.into_iter().zip(before) {
        let now = link.counters(way);
        assert!(now.frames >= before.frames + 3, "{now:?}");
        assert_eq!((now.lost, now.dropped), (0, before.dropped));
    }
}

/// What goes to the port of RoCE counts as such. The guest's device makes nothing of it.
fn faults_strike_what_goes_to_the_port_of_roce(link: &Link, cable: &Cable) {
    const COUNT: u64 = 500;
    for (near, far) in [
        (IpAddr::from(cable.near.ipv4), IpAddr::from(cable.far.ipv4)),
        (cable.near.ipv6.into(), cable.far.ipv6.into()),
    ] {
        let socket = UdpSocket::bind((near, 0)).expect("the address is ours");
        let before = link.counters(Way::ToGuest);
        let one = Faults { loss: 0.2, repetition: 0.2, delay: 0.2, corruption: 0.2, overtakers: 3 };
        link.faults_on(Way::ToGuest, one, 7);
        for number in 0..COUNT {
            socket.send_to(&[number as u8; 4096], (far, 4791)).expect("there is a way");
        }
        let seen = || link.counters(Way::ToGuest).roce - before.roce;
        let end = Instant::now() + SOON;
        while seen() < COUNT && Instant::now() < end {
            std::thread::yield_now();
        }
        let now = link.counters(Way::ToGuest);
        assert_eq!((seen(), now.dropped), (COUNT, before.dropped), "{far}: {now:?}");
        for (now, before) in [
            (now.lost, before.lost),
            (now.repeated, before.repeated),
            (now.delayed, before.delayed),
            (now.corrupted, before.corrupted),
        ] {
            assert!((50..150).contains(&(now - before)), "{now} after {before}");
        }
    }
    link.faults(Faults::NONE, 0);
}

#[test]
fn a_guest_boots_is_reached_does_what_it_is_told_and_is_gone() {
    let start = Instant::now();
    let Some(image) = or_pass_over(Image::prepare()) else { return };
    let prepared = start.elapsed();
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 9000).expect("a cable");
        let link = Link::plug(lab, &cable).expect("the far end is free");
        let booted = Guest::boot(&image, &GuestConfig::of(&cable.far), &link);
        let Some(guest) = or_pass_over(booted) else { return };
        eprintln!("image in {prepared:?}, up in {:?}", guest.boot_time());
        let process = format!("/proc/{}", guest.process());
        assert!(Path::new(&process).exists());

        shows_its_device(&guest);
        is_reached_both_ways(&cable, &guest);
        several_commands_run_and_are_stopped(&guest);
        let near = cable.near.ipv4.to_string();
        the_link_keeps_a_record_and_leaves_alone_what_is_not_roce(&link, &guest, &near);

        faults_strike_what_goes_to_the_port_of_roce(&link, &cable);

        let running = guest.start("sleep 1000").expect("it starts");
        drop(guest);
        assert!(!Path::new(&process).exists(), "{process} should be gone");
        let Err(Error::Gone { .. }) = running.wait(SOON) else { panic!("nothing runs there") };
    });
}

#[test]
fn a_guest_that_does_not_come_up_says_why_on_its_console() {
    let Some(image) = or_pass_over(Image::prepare()) else { return };
    lab::test(|lab| {
        let cable = lab.cable("a0", "b0", 1500).expect("a cable");
        let link = Link::plug(lab, &cable).expect("the far end is free");
        // No interface takes an MTU of 3.
        let config = GuestConfig { mtu: 3, ..GuestConfig::of(&cable.far) };
        match or_why(Guest::boot(&image, &config, &link)) {
            None => {}
            Some(why) => assert!(why.contains("eth0 mtu 3"), "{why}"),
        }
    });
}

/// Why there is no guest, unless it is for want of QEMU.
fn or_why(booted: Result<Guest, Error>) -> Option<String> {
    match booted {
        Err(why) if !why.is_for_want() => Some(why.to_string()),
        other => or_pass_over(other).map(|_| panic!("it came up")),
    }
}
