//! Tests of the progress engine: which task runs the NIC, which sleeps, and which is woken.

use std::future::{Future, poll_fn};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::Duration;

use doorbell_core::nic::Inbox;
use doorbell_kit::child;
use doorbell_transports::Device;
use doorbell_transports::shm::Shm;
use doorbell_verbs::work::Send;
use doorbell_verbs::{Buf, Config, Nic, Progress, Queues, QueuesConfig, RemoteMemory};

use crate::common::{
    End, Over, Runs, bounded, brief, buf, bytes, connected, dedicated, joined, names, nics, run,
    runtime, sleepy, wait_for,
};
use crate::watched::{Watched, Watches};

/// Polls a future once, and leaves it alone.
async fn begun<F: Future + Unpin>(future: &mut F) {
    poll_fn(|context| {
        assert!(std::pin::Pin::new(&mut *future).poll(context).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// Regression test for a bug: a future that was polled and then set aside, by a `select!`, say,
/// stayed the leader: other tasks waited for it, and so did the task that had set it aside.
#[test]
fn a_future_that_is_set_aside_delays_no_other_task() {
    for (spin, runs) in
        [Duration::ZERO, Duration::from_micros(50), Duration::MAX].into_iter().flat_map(|spin| {
            [(spin, Runs::CurrentThread), (spin, Runs::MultiThread), (spin, Runs::Nowhere)]
        })
    {
        run(runs, move || async move {
            let (near, far) = nics(Over::Shm, &Config { spin, ..brief() });
            let (near, far) = connected(&near, &far).await;
            let (mut here, mut there) = (near.pair.receive(), far.pair.receive());
            for _ in 0..3 {
                begun(&mut here).await;
                begun(&mut there).await;
                near.pair.write(buf(1, 100), near.peer).await.expect("it may");
                far.pair.write(buf(1, 100), far.peer).await.expect("it may");
            }
        });
    }
}

/// Plays ping-pong, in which each end sleeps until the other has sent.
async fn ping_pong(near: End, far: End, rounds: usize) {
    let plays = |end: End, begins: bool| async move {
        if begins {
            end.pair.send_inline(b"first").await.expect("it is received");
        }
        for round in 0..rounds {
            end.pair.recv(Buf::with_capacity(8)).await.expect("one comes");
            if !begins || round + 1 < rounds {
                end.pair.send_inline(b"next").await.expect("it is received");
            }
        }
        end
    };
    // Posted before the first comes: the peer is not to wait for a receive.
    for end in [&near, &far] {
        end.pair.post_receive(Buf::with_capacity(8)).expect("room");
    }
    let tasks = (tokio::spawn(plays(near, true)), tokio::spawn(plays(far, false)));
    let ends = tokio::try_join!(tasks.0, tasks.1).expect("neither of them fails");
    drop(ends);
}

fn sleepers(over: Over, config: Config, runs: Runs) {
    run(runs, move || async move {
        let (near, far) = nics(over, &config);
        let (one, other) = connected(&near, &far).await;
        ping_pong(one, other, 10_000).await;
        assert!(near.statistics().device.sleeps > 0 && far.statistics().device.sleeps > 0);
    });
}

#[test]
fn two_tasks_that_sleep_each_time_are_woken_each_time() {
    sleepers(Over::Shm, sleepy(), Runs::CurrentThread);
    sleepers(Over::Udp, sleepy(), Runs::CurrentThread);
}

#[test]
fn two_tasks_on_two_threads_that_sleep_each_time_are_woken_each_time() {
    sleepers(Over::Shm, sleepy(), Runs::MultiThread);
    sleepers(Over::Udp, sleepy(), Runs::MultiThread);
}

#[test]
fn in_dedicated_mode_each_task_is_woken_each_time_though_the_thread_sleeps() {
    let config = || Config { spin: Duration::ZERO, ..dedicated() };
    sleepers(Over::Shm, config(), Runs::MultiThread);
    sleepers(Over::Udp, config(), Runs::CurrentThread);
}

/// Runs a reader that waits without a runtime, and a program that posts.
async fn read_and_posted(
    near: &Nic,
    far: &Nic,
) -> (End<Queues>, End<Queues>, [doorbell_verbs::CompletionQueue; 2]) {
    let queues = [near, far].map(|nic| nic.completion_queue(256).expect("a size"));
    let configs = [&queues[0], &queues[1]].map(|queue| {
        let mut config = QueuesConfig::new(queue);
        // The peer may say late what it has taken, if it never has nothing to do.
        config.send_depth = 8192;
        config
    });
    let ends = joined((&near.domain(), &configs[0]), (&far.domain(), &configs[1])).await;
    (ends.0, ends.1, queues)
}

/// Threads without a runtime sleep each time.
#[test]
fn two_threads_that_sleep_each_time_are_woken_each_time() {
    const ROUNDS: usize = 5_000;
    for config in [sleepy(), Config { spin: Duration::ZERO, ..dedicated() }] {
        bounded(move || {
            let (near, far) = nics(Over::Shm, &config);
            let (one, other, [mine, theirs]) = wait_for(read_and_posted(&near, &far));
            let plays =
                |mut end: End<Queues>, mut queue: doorbell_verbs::CompletionQueue, begins: bool| {
                    move || {
                        let next = || Send::inline(b"next").expect("short").unsignalled();
                        for _ in 0..4 {
                            end.pair.receive.post(0, Buf::with_capacity(8)).expect("room");
                        }
                        if begins {
                            end.pair.send.post(next()).expect("room");
                        }
                        for round in 0..ROUNDS {
                            queue.wait().outcome.expect("a message");
                            end.pair.receive.post(0, Buf::with_capacity(8)).expect("room");
                            if !begins || round + 1 < ROUNDS {
                                end.pair.send.post(next()).expect("room");
                            }
                        }
                        (end, queue)
                    }
                };
            let threads =
                [thread::spawn(plays(one, mine, true)), thread::spawn(plays(other, theirs, false))];
            let _ends = threads.map(|thread| thread.join().expect("it does not fail"));
        });
    }
}

/// Hundreds of tasks use one queue pair, and each waits for room in its queue.
#[test]
fn hundreds_of_tasks_share_a_queue_pair() {
    const TASKS: u64 = 300;
    const EACH: u64 = 20;
    for (config, runs) in [
        (brief(), Runs::MultiThread),
        (sleepy(), Runs::CurrentThread),
        (dedicated(), Runs::MultiThread),
    ] {
        run(runs, move || async move {
            let (near, far) = nics(Over::Shm, &config);
            let (near, far) = connected(&near, &far).await;
            let near = Arc::new(near);
            let word = near.peer.at(0, 8).expect("within");
            let tasks: Vec<_> =
                (0..TASKS).map(|task| tokio::spawn(adds(near.clone(), word, task, EACH))).collect();
            for task in tasks {
                task.await.expect("it does not fail");
            }
            assert_eq!(far.memory.load(0), Ok(TASKS * EACH));
        });
    }
}

async fn adds(end: Arc<End>, word: RemoteMemory, task: u64, times: u64) {
    for time in 0..times {
        end.pair.fetch_add(word, 1).await.expect("it may");
        let own = end.peer.at(64 + task * 64, 64).expect("within");
        let data = bytes((task * times + time) as usize, 64);
        end.pair.write(Buf::from(data.clone()), own).await.expect("it may");
        let read = end.pair.read(Buf::with_capacity(64), own).await.expect("it may");
        assert!(read[..] == data, "its own bytes");
    }
}

/// Six NICs of one program are joined in a ring.
#[test]
fn several_nics_of_a_program_run_beside_each_other() {
    const NICS: usize = 6;
    for config in [brief(), sleepy(), dedicated()] {
        run(Runs::MultiThread, move || async move {
            let nics: Vec<_> =
                (0..NICS / 2).flat_map(|_| <[Nic; 2]>::from(nics(Over::Shm, &config))).collect();
            // Those of one name can reach each other.
            let mut tasks = Vec::new();
            for pair in nics.chunks(2) {
                for _ in 0..2 {
                    let (near, far) = connected(&pair[0], &pair[1]).await;
                    tasks.push(tokio::spawn(ping_pong(near, far, 200)));
                }
            }
            for task in tasks {
                task.await.expect("it does not fail");
            }
        });
    }
}

/// A single task waits for messages, while threads that wait for nothing post them.
#[test]
fn a_waiting_task_receives_what_threads_post() {
    const COUNT: u64 = 5_000;
    for config in [brief(), sleepy(), dedicated()] {
        run(Runs::MultiThread, move || async move {
            let (near, far) = nics(Over::Shm, &config);
            let (mut one, mut other, [mut sent, mut received]) = read_and_posted(&near, &far).await;
            for id in 0..64 {
                other.pair.receive.post(id, Buf::with_capacity(8)).expect("room");
            }
            let posts = thread::spawn(move || {
                for id in 0..COUNT {
                    let message = || Send::inline(b"posted").expect("short").id(id);
                    while one.pair.send.post(message()).is_err() {
                        thread::yield_now();
                    }
                }
                one
            });
            let reads = tokio::spawn(async move {
                for id in 0..COUNT {
                    assert_eq!(sent.completion().await.id, id);
                }
                sent
            });
            for _ in 0..COUNT {
                received.completion().await.outcome.expect("a message");
                other.pair.receive.post(0, Buf::with_capacity(8)).expect("room");
            }
            reads.await.expect("it does not fail");
            posts.join().expect("it does not fail");
        });
    }
}

/// Regression test for a bug: the task that kept the watch ended with its runtime, and tasks of
/// another runtime slept for ever.
#[test]
fn a_nic_outlives_the_runtime_that_it_was_opened_in() {
    bounded(|| {
        let [opens, waits] =
            [runtime(Runs::MultiThread), runtime(Runs::MultiThread)].map(Option::unwrap);
        let ends = opens.block_on(async {
            let (near, far) = nics(Over::Shm, &sleepy());
            connected(&near, &far).await
        });
        let (near, far) = ends;
        let received = waits.spawn(async move {
            let message = far.pair.recv(Buf::with_capacity(8)).await;
            (far, message)
        });
        let sleeps = || near.domain.nic().statistics().device.sleeps;
        while sleeps() == 0 {
            thread::yield_now();
        }
        drop(opens);
        wait_for(near.pair.send_inline(b"hello")).expect("it is received");
        let (_far, message) = waits.block_on(received).expect("it does not fail");
        assert_eq!(&message.expect("one comes").data[..], b"hello");
    });
}

/// Regression test for a bug: a task that posted while the thread slept took the NIC and led, and
/// then nobody ran it until the thread next looked.
#[test]
fn in_dedicated_mode_no_other_thread_runs_the_nic() {
    run(Runs::MultiThread, || async {
        let [here, there] = names(Over::Shm).map(|name| name.replace("shm:", ""));
        let device = |name: &str| Watched::new(Shm::join(name).expect("nobody else has it"));
        let ((near, ran_near), (far, ran_far)) = (device(&here), device(&there));
        let config = || Config { spin: Duration::from_micros(100), ..dedicated() };
        let nic = |device| Nic::builder().config(config()).on(device).expect("a NIC");
        let (near, far) = (nic(near), nic(far));
        let (one, other) = connected(&near, &far).await;
        // Who looks for the way to a peer takes turns, too.
        for ran in [&ran_near, &ran_far] {
            ran.lock().expect("nobody panics there").clear();
        }
        for _ in 0..20 {
            let sleeps = || [&near, &far].map(|nic| nic.statistics().device.sleeps);
            let before = sleeps();
            ping(&one, &other).await;
            ping(&other, &one).await;
            while sleeps() == before {
                tokio::task::yield_now().await;
            }
        }
        for ran in [ran_near, ran_far] {
            let threads = ran.lock().expect("nobody panics there").len();
            assert_eq!(threads, 1);
        }
    });
}

async fn ping(from: &End, to: &End) {
    let (sent, received) =
        tokio::join!(from.pair.send_inline(b"ping"), to.pair.recv(Buf::with_capacity(8)));
    sent.expect("it is received");
    received.expect("one comes");
}

/// Counts the turns of a NIC.
#[derive(Clone, Default)]
struct Turns(Arc<AtomicU64>);

impl Watches for Turns {
    fn receive(&mut self, device: &mut impl Device, inbox: &mut impl Inbox) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed);
        device.receive(inbox)
    }
}

/// A task that waited took turns for 40 µs before the task ran that was to answer, which then did
/// the same.
#[test]
fn tasks_of_one_thread_that_wait_for_each_other_take_few_turns_before_they_let_each_other_run() {
    const ROUNDS: u64 = 1000;
    run(Runs::CurrentThread, || async {
        let turns = Turns::default();
        let nic = |name: String| {
            let device = Shm::join(&name.replace("shm:", "")).expect("nobody else has it");
            let device = Watched::by(turns.clone(), device);
            Nic::builder().config(brief()).on(device).expect("a NIC")
        };
        let [near, far] = names(Over::Shm).map(nic);
        let (one, other) = connected(&near, &far).await;
        ping_pong(one, other, 100).await;
        let (one, other) = connected(&near, &far).await;
        let before = turns.0.load(Ordering::Relaxed);
        ping_pong(one, other, ROUNDS as usize).await;
        let taken = turns.0.load(Ordering::Relaxed) - before;
        assert!(taken < 64 * ROUNDS, "{taken} turns");
    });
}

struct Counted;

impl Wake for Counted {
    fn wake(self: Arc<Self>) {}
}

/// A waiting task that was dropped is forgotten: a task whose waker is kept is kept.
#[test]
fn a_dropped_future_is_forgotten() {
    run(Runs::MultiThread, || async {
        let mut wakers = Vec::new();
        let (near, far) = nics(Over::Shm, &sleepy());
        let (one, other, [mut queue, _]) = read_and_posted(&near, &far).await;
        let (asked, taken) = connected(&near, &far).await;
        let mut listener =
            near.listen(doorbell_verbs::ServiceId(9)).await.expect("nobody else does");
        for _ in 0..100 {
            let waker = Arc::new(Counted);
            {
                let waker = Waker::from(waker.clone());
                let mut context = Context::from_waker(&waker);
                let mut polls = |future: std::pin::Pin<&mut dyn Future<Output = ()>>| {
                    let _ = future.poll(&mut context);
                };
                polls(pin!(async { drop(asked.pair.receive().await) }));
                polls(pin!(async { drop(queue.completion().await) }));
                polls(pin!(async { drop(listener.accept().await.expect("a request")) }));
                polls(pin!(async { drop(asked.pair.connection().ended().await) }));
                polls(pin!(async { near.until(|| None::<()>).await }));
                polls(pin!(async { drop(asked.pair.send_inline(b"unheard").await) }));
            }
            wakers.push(waker);
        }
        // Where only one waits at a time, the last is kept until the next comes.
        let kept = wakers.iter().filter(|waker| Arc::strong_count(waker) > 1).count();
        assert!(kept <= 1, "{kept} are kept");
        drop((one, other, taken));
    });
}

/// Returns the processors on which threads of this name may run, as the system lists them.
fn allowed(name: &str) -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("a process has threads");
    let tasks = tasks.filter_map(|task| Some(task.ok()?.path()));
    // One that ends meanwhile is none.
    tasks.filter(|task| is_named(task, name)).filter_map(|task| allowed_list(&task)).collect()
}

fn is_named(task: &Path, name: &str) -> bool {
    std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
}

fn allowed_list(task: &Path) -> Option<String> {
    let status = std::fs::read_to_string(task.join("status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

/// Parses a list of numbers such as `0-3,7`.
fn processors(list: &str) -> Vec<usize> {
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let ranges = list.split(',').map(|range| match range.split_once('-') {
        Some((first, last)) => number(first)..=number(last),
        None => number(range)..=number(range),
    });
    ranges.flatten().collect()
}

/// The test runs in a process of its own, where no other NIC has a thread.
#[test]
fn a_thread_of_the_nics_own_runs_on_the_processor_that_is_named_or_wherever_this_one_may() {
    child::alone(|| {
        let own = allowed_list(Path::new("/proc/self/task").join(pid()).as_path());
        let own = own.expect("this process has a status");
        let named = processors(&own).into_iter().map(|core| (Some(core), core.to_string()));
        for (core, expected) in named.chain([(None, own.clone())]) {
            let progress = Progress::Dedicated { core };
            let nic = Nic::builder()
                .config(Config { progress, ..brief() })
                .open_blocking(&names(Over::Shm)[0]);
            let nic = nic.expect("nobody else has that name");
            assert_eq!(allowed("doorbell-nic"), [expected], "{core:?}");
            drop(nic);
            // It ends when it has heard of that.
            while !allowed("doorbell-nic").is_empty() {
                thread::sleep(Duration::from_millis(1));
            }
        }
    });
}

fn pid() -> String {
    std::process::id().to_string()
}

/// Regression test for a bug: a write after a pause bore the time of the last turn before the
/// pause, and so it was taken for lost at the first look at the clock, and sent again.
#[test]
fn over_udp_a_write_after_a_pause_of_the_program_is_not_retransmitted() {
    run(Runs::CurrentThread, || async {
        let (near, far) = nics(Over::Udp, &brief());
        let (one, _other) = connected(&near, &far).await;
        for _ in 0..50 {
            // Nobody reads the clock meanwhile, for all of it happens on this thread.
            thread::sleep(Duration::from_millis(3));
            one.pair.write(buf(1, 100), one.peer).await.expect("it may");
        }
        // Some may be where the machine does much else.
        let again = near.statistics().nic.retransmitted;
        assert!(again < 15, "{again} of 50 were sent again");
    });
}
