//! Handlers that collect requests, and handle those of one look together.

use std::sync::{Arc, Mutex};

use doorbell_am::{Collect, Handlers, Request, RequestId, Words};

use crate::common::{everywhere, mapped};

const COLLECTED: RequestId<Words> = RequestId::new(0, "collected");
const OTHER: RequestId<u64> = RequestId::new(1, "other");

/// The numbers that handlers have handled, in order.
type Log = Arc<Mutex<Vec<u64>>>;

/// Handles numbers when it finishes, and panics for those that it is told to.
struct Collecting {
    numbers: Vec<u64>,
    log: Log,
    panics_at: Option<u64>,
}

impl Collect for Collecting {
    fn collect(&mut self, _: &Request<'_>, words: &[u64]) -> bool {
        self.numbers.extend(words);
        true
    }

    fn finish(&mut self) -> bool {
        let numbers = std::mem::take(&mut self.numbers);
        if numbers.iter().any(|number| Some(*number) == self.panics_at) {
            panic!("as it should");
        }
        self.log.lock().expect("no panic under the lock").extend(numbers);
        false
    }
}

fn handlers(log: &Log, panics_at: Option<u64>) -> Handlers {
    let (collected, other) = (log.clone(), log.clone());
    Handlers::new()
        .request_collected(COLLECTED, Collecting { numbers: Vec::new(), log: collected, panics_at })
        .request(OTHER, move |_, number| {
            other.lock().expect("no panic under the lock").push(number);
        })
}

fn words(number: u64) -> Words {
    Words::new(&[number]).expect("one word is not too many")
}

#[test]
fn requests_that_were_collected_are_handled_before_those_of_other_kinds_that_came_later() {
    everywhere(|over| async move {
        let log = Log::default();
        let (_near, peer, _far) = mapped(over, Handlers::new(), handlers(&log, None)).await;
        for number in 0..1000 {
            match number % 7 {
                3 | 5 => peer.request(OTHER, number).await.expect("it is sent"),
                _ => peer.request(COLLECTED, words(number)).await.expect("it is sent"),
            }
        }
        peer.settled().await;
        let log = log.lock().expect("no panic under the lock").clone();
        assert_eq!(log, (0..1000).collect::<Vec<_>>());
    });
}

#[test]
fn a_panic_while_collected_requests_are_handled_is_counted_and_the_next_are_handled() {
    everywhere(|over| async move {
        let log = Log::default();
        let (_near, peer, far) = mapped(over, Handlers::new(), handlers(&log, Some(3))).await;
        for number in 0..20 {
            peer.request(COLLECTED, words(number)).await.expect("it is sent");
            peer.settled().await;
        }
        assert_eq!(far.bundle().statistics().panics, 1);
        let log = log.lock().expect("no panic under the lock").clone();
        assert!(!log.contains(&3) && log.ends_with(&[19]), "{log:?}");
    });
}
