//! Tests by loom of every interleaving of a few threads that post, run the NIC, follow, or wait for
//! completions.

use std::sync::Arc;
use std::task::{Wake, Waker};

use loom::model;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

use crate::dispatch::Slots;
use crate::progress::{LeaderLock, Precedence};
use crate::sync::single_task::SingleTask;
use crate::sync::wakers::Place;
use crate::sys::lock::ProgressLock;

/// Counts the work that was posted.
#[derive(Default)]
struct Posted(AtomicU32);

/// Posts as a program does: sends all that was posted, unless another thread runs the NIC.
fn post(posted: &Posted, nic: &ProgressLock<u32>) {
    posted.0.fetch_add(1, Ordering::Release);
    let mut holder = nic.ring();
    while let Some(mut guard) = holder {
        *guard = posted.0.load(Ordering::Acquire);
        holder = match guard.leave() {
            Ok(()) => None,
            Err(still) => {
                still.rung();
                Some(still)
            }
        };
    }
}

#[test]
fn work_posted_while_another_thread_runs_the_nic_is_sent() {
    model(|| {
        let engine = Arc::new((Posted::default(), ProgressLock::new(0)));
        let posters = [(); 2].map(|()| {
            let engine = engine.clone();
            thread::spawn(move || post(&engine.0, &engine.1))
        });
        posters.into_iter().for_each(|poster| poster.join().unwrap());
        assert_eq!(*engine.1.enter().expect("the lock is free"), 2);
    });
}

#[test]
fn a_thread_that_claims_the_nic_gets_it_from_a_thread_that_takes_turns() {
    model(|| {
        let nic = Arc::new(ProgressLock::new(0));
        let other = nic.clone();
        let claims = thread::spawn(move || {
            let mut guard = other.claim();
            *guard += 1;
            assert!(guard.leave().is_ok());
        });
        if let Some(mut guard) = nic.enter() {
            *guard += 1;
            assert!(guard.leave().is_ok());
        }
        claims.join().unwrap();
        assert!(*nic.enter().expect("the lock is free") >= 1);
    });
}

/// Whether a task was woken.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_follower_is_woken_or_finds_the_lock_free() {
    model(|| {
        let leader_lock = Arc::new(LeaderLock::new(()));
        let holder = leader_lock.clone();
        let runs = thread::spawn(move || {
            if let Some(guard) = holder.enter() {
                holder.leave(guard, |()| ());
            }
        });
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(woken.clone());
        let mut place = Place::default();
        let mut has_it = false;
        if let Some(guard) = leader_lock.enter() {
            leader_lock.leave(guard, |()| ());
            has_it = true;
        } else {
            leader_lock.follow(&mut place, &waker);
            if let Some(guard) = leader_lock.enter_unled(Precedence::Awaits) {
                leader_lock.unfollow(&mut place);
                leader_lock.leave(guard, |()| ());
                has_it = true;
            }
        }
        runs.join().unwrap();
        assert!(
            has_it || woken.0.load(Ordering::SeqCst),
            "asleep while no task holds the lock or leads"
        );
    });
}

#[test]
fn a_follower_is_woken_when_the_leader_resigns() {
    model(|| {
        let leader_lock = Arc::new(LeaderLock::new(()));
        let leadership = leader_lock.lead(Precedence::Awaits).expect("nobody leads");
        let keeper = leader_lock.clone();
        let resigns = thread::spawn(move || keeper.resign(leadership));
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(woken.clone());
        let mut place = Place::default();
        leader_lock.follow(&mut place, &waker);
        let has_it = leader_lock
            .enter_unled(Precedence::Awaits)
            .map(|guard| leader_lock.leave(guard, |()| ()))
            .is_some();
        resigns.join().unwrap();
        assert!(
            has_it || woken.0.load(Ordering::SeqCst),
            "asleep while no task holds the lock or leads"
        );
    });
}

#[test]
fn a_follower_is_woken_when_the_leader_resigns_and_the_one_before_it_stops_following() {
    model(|| {
        let leader_lock = Arc::new(LeaderLock::new(()));
        let leadership = leader_lock.lead(Precedence::Awaits).expect("nobody leads");
        let (mut first, mut second) = (Place::default(), Place::default());
        leader_lock.follow(&mut first, Waker::noop());
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        leader_lock.follow(&mut second, &Waker::from(woken.clone()));
        let keeper = leader_lock.clone();
        let resigns = thread::spawn(move || keeper.resign(leadership));
        // What the first waits for has come meanwhile.
        leader_lock.unfollow(&mut first);
        resigns.join().unwrap();
        assert!(woken.0.load(Ordering::SeqCst), "asleep while no task holds the lock or leads");
    });
}

#[test]
fn a_future_that_sleeps_is_woken_by_its_completion() {
    model(|| {
        let slots = Arc::new(Slots::<(), u32>::new(()));
        let index = slots.post(|(), _| Ok::<(), ()>(())).unwrap();
        let nic = slots.clone();
        let completes = thread::spawn(move || {
            nic.complete(index, || 7).into_iter().for_each(Waker::wake);
        });
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        let waker = Waker::from(woken.clone());
        let seen = slots.completed();
        let mut found = if seen == 0 { None } else { slots.take(index) };
        if found.is_none() {
            slots.wait(index, &waker);
            found = if slots.completed() == seen { None } else { slots.take(index) };
        }
        completes.join().unwrap();
        match found {
            Some(found) => assert_eq!(found, 7),
            None => {
                assert!(woken.0.load(Ordering::SeqCst), "asleep although its completion is there");
                assert_eq!(slots.take(index), Some(7));
            }
        }
    });
}

#[test]
fn a_dropped_future_leaves_its_slot_to_the_next() {
    model(|| {
        let slots = Arc::new(Slots::<(), u32>::new(()));
        let index = slots.post(|(), _| Ok::<(), ()>(())).unwrap();
        let nic = slots.clone();
        let completes = thread::spawn(move || {
            assert!(nic.complete(index, || 7).is_none());
        });
        slots.abandon(index);
        completes.join().unwrap();
        assert_eq!(slots.post(|(), _| Ok::<(), ()>(())), Ok(index));
    });
}

/// Of two tasks each would probe the same peers, and without one nobody would notice that they have
/// died.
#[test]
fn work_that_is_entered_while_a_task_ends_is_done_by_one_task() {
    model(|| {
        let (task, work) = (Arc::new(SingleTask::new()), Arc::new(AtomicBool::new(false)));
        assert!(task.is_to_begin());
        let enters = [(); 2].map(|()| {
            let (task, work) = (task.clone(), work.clone());
            thread::spawn(move || {
                work.store(true, Ordering::Relaxed);
                task.is_to_begin()
            })
        });
        let goes_on = !task.is_to_end(|| work.load(Ordering::Relaxed));
        let began = enters.into_iter().map(|enters| enters.join().unwrap());
        let tasks = usize::from(goes_on) + began.filter(|began| *began).count();
        assert_eq!(tasks, 1);
    });
}
