//! The rescue thread: one thread of the process that runs NICs which nobody else runs.
//!
//! A NIC is run by tasks of the program, and while none of them waits, by the watch, which is a
//! task too. A handler that blocks a worker thread keeps all of them from running: on a runtime of
//! one worker for as long as it blocks, and on a larger one if they were behind it on its worker.
//! Peers must not take the NIC for dead meanwhile. The rescue thread looks after such NICs, and
//! after NICs outside all runtimes, which have no watch.
//!
//! The thread sleeps until a descriptor of a NIC is readable (the device has something for a NIC
//! that sleeps, or the time of a NIC's next look has come), or until a watch says that it yields to
//! tasks of the program, and may not get to run again. From then on the tasks of the program have
//! [`GRACE`] to run the NIC. Only when nobody has run the NIC by then does the thread take over,
//! and it goes on at each event until somebody else runs the NIC again. So a NIC costs the thread
//! two wake-ups per [`GRACE`] at most, and none at all while nothing happens.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use crate::sync::lock::locked;
use crate::sys::alarms::Alarms;

/// How long a NIC that has something to do may go without being run by a task of the program.
const GRACE: Duration = Duration::from_millis(20);

/// What the rescue thread does next about a NIC that it has just run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Next {
    /// Run the NIC again soon: more may come.
    Again,
    /// Wait for the next event of the NIC.
    Rest,
}

/// A NIC as the rescue thread sees it.
pub(super) trait Rescuable: Send + Sync {
    /// Returns a number that changes whenever anyone but the rescue thread runs the NIC.
    fn runs(&self) -> u64;

    /// Returns whether a task of a runtime watches the NIC. Otherwise the rescue thread is the
    /// watch, and runs the NIC at once.
    fn is_watched(&self) -> bool;

    /// Returns the descriptor that is readable while the NIC has something to do.
    fn alarm(&self) -> &OwnedFd;

    /// Returns whether the descriptor becomes readable in any case if nobody runs the NIC from here
    /// on: its device is armed, or its timer is set. Returns false while another thread runs it.
    fn will_report(&self) -> bool;

    /// Runs the NIC for a while.
    fn rescue(&self) -> Next;
}

/// The place of a NIC in the list of the rescue thread.
#[derive(Debug)]
pub(super) struct Rescued {
    list: Arc<List>,
    key: u64,
    /// Whether a grace of the NIC has begun and not ended.
    in_grace: Arc<AtomicBool>,
}

impl Rescued {
    /// Enters a NIC in the list of the rescue thread, which is started if there is none yet.
    ///
    /// # Errors
    /// When the system has no thread or no descriptor left.
    pub fn enter(nic: Weak<dyn Rescuable>, alarm: &OwnedFd) -> io::Result<Self> {
        let list = List::of_process()?;
        let in_grace = Arc::new(AtomicBool::new(false));
        let key = list.enter(nic, alarm, in_grace.clone())?;
        Ok(Self { list, key, in_grace })
    }

    /// Notes that the NIC is neither armed nor ticking, and that the task which watches it depends
    /// on other tasks to run again. `runs` is how often others than the rescue thread have run it.
    pub fn note(&self, runs: u64) {
        if !self.in_grace.swap(true, Ordering::AcqRel) {
            self.list.note(self.key, runs);
        }
    }

    /// Removes the NIC, whose descriptor is `alarm`, from the list.
    pub fn leave(self, alarm: &OwnedFd) {
        self.list.leave(self.key, alarm);
    }
}

/// The NICs that the rescue thread looks after.
#[derive(Debug)]
struct List {
    alarms: Alarms,
    nics: Mutex<Nics>,
}

#[derive(Default)]
struct Nics {
    places: HashMap<u64, Place>,
    next: u64,
    /// The times that tasks of the program are given to run their NICs, in the order in which they
    /// end.
    graces: VecDeque<Grace>,
}

impl std::fmt::Debug for Nics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nics").field("count", &self.places.len()).finish_non_exhaustive()
    }
}

/// A time within which a task of the program is to run a NIC.
struct Grace {
    ends: Instant,
    key: u64,
    /// Whether the NIC had something to do when the time began, for sure.
    had_work: bool,
}

struct Place {
    nic: Weak<dyn Rescuable>,
    in_grace: Arc<AtomicBool>,
    /// The end of the NIC's grace. A grace in the list that ends earlier has been superseded.
    grace_ends: Option<Instant>,
    /// How often others had run the NIC at the last look.
    runs: u64,
    /// Whether nobody else ran the NIC when it had something to do.
    stranded: bool,
}

impl List {
    /// Returns the list of the thread of this process, and starts the thread if there is none yet.
    fn of_process() -> io::Result<Arc<Self>> {
        static LIST: Mutex<Option<Arc<List>>> = Mutex::new(None);
        let mut known = locked(&LIST);
        if let Some(list) = &*known {
            return Ok(list.clone());
        }
        let list = Arc::new(Self { alarms: Alarms::new()?, nics: Mutex::default() });
        let thread = std::thread::Builder::new().name("doorbell-rescue".into());
        let own = list.clone();
        thread.spawn(move || own.run())?;
        *known = Some(list.clone());
        Ok(list)
    }

    fn nics(&self) -> MutexGuard<'_, Nics> {
        locked(&self.nics)
    }

    fn enter(
        &self,
        nic: Weak<dyn Rescuable>,
        alarm: &OwnedFd,
        in_grace: Arc<AtomicBool>,
    ) -> io::Result<u64> {
        let mut nics = self.nics();
        nics.next += 1;
        let key = nics.next;
        self.alarms.add(alarm.as_fd(), key)?;
        nics.places
            .insert(key, Place { nic, in_grace, grace_ends: None, runs: 0, stranded: false });
        Ok(key)
    }

    fn leave(&self, key: u64, alarm: &OwnedFd) {
        self.nics().places.remove(&key);
        // A live descriptor that was added can be removed.
        let _ = self.alarms.remove(alarm.as_fd());
    }

    fn note(&self, key: u64, runs: u64) {
        let mut nics = self.nics();
        let Some(place) = nics.places.get_mut(&key) else { return };
        // The watch runs, so nobody is stranded any more.
        (place.runs, place.stranded) = (runs, false);
        self.begin_grace(&mut nics, key, false);
    }

    /// Begins a grace, which takes the place of the NIC's grace until now: each grace leads to
    /// another one sooner or later, so graces beside each other would never become fewer.
    fn begin_grace(&self, nics: &mut Nics, key: u64, had_work: bool) {
        let Some(place) = nics.places.get_mut(&key) else { return };
        let ends = Instant::now() + GRACE;
        place.grace_ends = Some(ends);
        if nics.graces.is_empty() {
            self.alarms.set_timer(GRACE);
        }
        nics.graces.push_back(Grace { ends, key, had_work });
    }

    /// Runs stranded NICs for ever.
    fn run(&self) {
        let (mut events, mut again) = (Vec::new(), Vec::new());
        loop {
            self.alarms.sleep(again.is_empty(), &mut events);
            let mut due = std::mem::take(&mut again);
            events.drain(..).for_each(|key| due.extend(self.heard_from(key)));
            while let Some(grace) = self.next_ended() {
                due.extend(self.end_grace(&grace));
            }
            for key in due {
                if self.rescue(key) == Next::Again {
                    again.push(key);
                }
            }
            if !again.is_empty() {
                std::thread::yield_now();
            }
        }
    }

    /// Returns a grace that has ended, or sets the timer for the next.
    fn next_ended(&self) -> Option<Grace> {
        let (mut nics, now) = (self.nics(), Instant::now());
        let ended = nics.graces.pop_front_if(|grace| grace.ends <= now);
        if let (None, Some(next)) = (&ended, nics.graces.front()) {
            self.alarms.set_timer(next.ends - now);
        }
        ended
    }

    /// Returns a NIC in the list, if the program has it still. The reference must be dropped while
    /// the list is not locked, since the last one removes the NIC from the list.
    fn nic(&self, key: u64) -> Option<Arc<dyn Rescuable>> {
        self.nics().places.get(&key).and_then(|place| place.nic.upgrade())
    }

    /// Takes in that a NIC has something to do. Returns the NIC's key if the thread must run it now.
    fn heard_from(&self, key: u64) -> Option<u64> {
        let nic = self.nic(key)?;
        let (runs, is_watched) = (nic.runs(), nic.is_watched());
        let mut nics = self.nics();
        let place = nics.places.get_mut(&key)?;
        if !is_watched || place.stranded && runs == place.runs {
            return Some(key);
        }
        (place.runs, place.stranded) = (runs, false);
        place.in_grace.store(true, Ordering::Relaxed);
        self.begin_grace(&mut nics, key, true);
        None
    }

    /// Looks whether anybody has run a NIC by the end of its grace. Returns the NIC's key if the
    /// thread must run it now.
    fn end_grace(&self, grace: &Grace) -> Option<u64> {
        let nic = self.nic(grace.key)?;
        {
            let mut nics = self.nics();
            let place = nics.places.get_mut(&grace.key)?;
            place.grace_ends.take_if(|ends| *ends == grace.ends)?;
            // A note that comes from here on begins a grace. What led to an earlier one is seen
            // below.
            place.in_grace.swap(false, Ordering::AcqRel);
        }
        let (runs, will_report) = (nic.runs(), nic.will_report());
        let mut nics = self.nics();
        let place = nics.places.get_mut(&grace.key)?;
        if runs == place.runs && (grace.had_work || !will_report) {
            place.stranded = true;
            return Some(grace.key);
        }
        if will_report {
            self.listen_to(&*nic, grace.key);
        } else {
            // A task of the program runs the NIC, or may be kept from it in the middle.
            place.runs = runs;
            place.in_grace.store(true, Ordering::Relaxed);
            self.begin_grace(&mut nics, grace.key, false);
        }
        None
    }

    fn rescue(&self, key: u64) -> Next {
        let Some(nic) = self.nic(key) else { return Next::Rest };
        let next = nic.rescue();
        if next == Next::Rest && self.nics().places.contains_key(&key) {
            self.listen_to(&*nic, key);
        }
        next
    }

    /// Waits for the next event of a NIC in the list.
    fn listen_to(&self, nic: &dyn Rescuable, key: u64) {
        // A live descriptor that was added can be asked again.
        let _ = self.alarms.again(nic.alarm().as_fd(), key);
    }
}

#[cfg(all(test, not(verbs_loom)))]
mod tests {
    use super::*;

    /// A NIC that tasks of the program run all the time.
    struct Busy(OwnedFd, std::sync::atomic::AtomicU64);

    impl Rescuable for Busy {
        fn runs(&self) -> u64 {
            self.1.fetch_add(1, Ordering::Relaxed)
        }

        fn is_watched(&self) -> bool {
            true
        }

        fn alarm(&self) -> &OwnedFd {
            &self.0
        }

        fn will_report(&self) -> bool {
            true
        }

        fn rescue(&self) -> Next {
            panic!("the tasks of the program run the NIC");
        }
    }

    /// Regression test for a bug: each note of a watch began a grace that led to others without
    /// end, so that the thread woke about each millisecond.
    #[test]
    fn a_nic_has_two_graces_at_most_however_often_its_watch_yields() {
        let list = List { alarms: Alarms::new().expect("a descriptor"), nics: Mutex::default() };
        let alarm = || OwnedFd::from(std::io::pipe().expect("a descriptor").0);
        let nic: Arc<dyn Rescuable> = Arc::new(Busy(alarm(), Default::default()));
        let in_grace = Arc::new(AtomicBool::new(false));
        let key = list.enter(Arc::downgrade(&nic), nic.alarm(), in_grace.clone()).expect("room");
        for _ in 0..100 {
            // The oldest grace ends, and both events come that begin another one.
            let oldest = list.nics().graces.pop_front();
            oldest.into_iter().for_each(|grace| assert_eq!(list.end_grace(&grace), None));
            if !in_grace.swap(true, Ordering::AcqRel) {
                list.note(key, 0);
                assert_eq!(list.heard_from(key), None);
            }
            assert!(list.nics().graces.len() <= 2);
        }
    }
}
