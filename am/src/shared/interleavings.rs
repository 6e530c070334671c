//! Tests by loom of every interleaving of threads that signal something to the engine of a bundle,
//! and of the task that serves the bundle and goes to sleep.

use std::sync::Arc;
use std::task::{Wake, Waker};

use doorbell_verbs::{CompletionQueue, Config, Nic};
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::{model, thread};

use super::signals::{Gauge, Signals};

/// A link that may hold messages, and counts how often it has sent them.
struct Link(AtomicU32);

impl Link {
    fn send(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

type Shared = Arc<Signals<Link>>;

/// Whether a task was woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Queues to which no completion ever comes, made outside of the model.
fn queues() -> (Nic, [CompletionQueue; 2]) {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let run = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("shm:am-loom-{}/{run}", std::process::id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let nic = runtime.expect("a runtime").block_on(async { Nic::open(&name).await });
    let nic = nic.expect("nobody has that name");
    let queues = [(); 2].map(|()| nic.completion_queue(4).expect("room"));
    (nic, queues)
}

/// Runs a model with signals that are new each time.
fn explore(signals: impl Fn(Shared) + Send + Sync + 'static) {
    let (_nic, queues) = queues();
    // Of the standard library, since nothing that loom explores depends on it.
    let queues = std::sync::Mutex::new(queues);
    model(move || {
        let gauges = queues.lock().expect("no panic").each_ref().map(Gauge::of);
        signals(Arc::new(Signals::new(gauges)));
    });
}

/// Serves the bundle once as its task does: looks if anything is signalled, and otherwise registers
/// and looks again before it sleeps. Returns the number of looks, and the waker that was left when
/// the task went to sleep.
fn serves(signals: &Signals<Link>) -> (u32, Option<Arc<Woken>>) {
    let mut looks = 0;
    let mut look = || {
        if signals.are_quiet() {
            return signals.is_ready();
        }
        signals.begin_look();
        if signals.any_holding() {
            signals.flush_with(Link::send);
        }
        looks += 1;
        true
    };
    if look() {
        return (looks, None);
    }
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    signals.set_driver(&Waker::from(woken.clone()));
    if look() { (looks, None) } else { (looks, Some(woken)) }
}

/// Has a thread signal something while the task of the bundle goes to sleep. The task has seen the
/// signal, was woken, or would see the signal in its next look.
fn is_heard(signal: fn(&Signals<Link>, &Arc<Link>), seen: fn(&Signals<Link>, &Link) -> bool) {
    explore(move |signals| {
        let link = Arc::new(Link(AtomicU32::new(0)));
        let (of, its) = (signals.clone(), link.clone());
        let other = thread::spawn(move || signal(&of, &its));
        let (_, sleeps) = serves(&signals);
        other.join().unwrap();
        if let Some(woken) = sleeps {
            let woken = woken.0.load(Ordering::SeqCst);
            assert!(woken, "the task sleeps, and nobody wakes it");
        }
        // A task that is awake looks again.
        serves(&signals);
        assert!(seen(&signals, &link), "the signal is lost");
    });
}

#[test]
fn a_task_that_goes_to_sleep_while_the_engine_is_stirred_is_woken_or_looks() {
    is_heard(|signals, _| signals.stir(), |signals, _| signals.looks() > 0);
}

#[test]
fn a_task_that_goes_to_sleep_while_a_link_holds_messages_is_woken_or_has_them_sent() {
    is_heard(
        |signals, link| signals.hold(link.clone()),
        |_, link| link.0.load(Ordering::Relaxed) == 1,
    );
}

#[test]
fn a_task_that_goes_to_sleep_while_a_layer_above_has_work_is_woken_or_sees_that() {
    is_heard(|signals, _| signals.signal_ready(), |signals, _| signals.is_ready());
}

#[test]
fn messages_that_two_links_hold_while_a_third_thread_flushes_are_all_sent_once() {
    explore(|signals| {
        let links = [(); 2].map(|()| Arc::new(Link(AtomicU32::new(0))));
        let holders = links.clone().map(|link| {
            let signals = signals.clone();
            thread::spawn(move || signals.hold(link))
        });
        let flush = || {
            signals.begin_look();
            if signals.any_holding() {
                signals.flush_with(Link::send);
            }
        };
        flush();
        holders.into_iter().for_each(|holder| holder.join().unwrap());
        // A quiet engine is not looked at again.
        if !signals.are_quiet() {
            flush();
        }
        for link in links {
            assert_eq!(link.0.load(Ordering::Relaxed), 1);
        }
    });
}
