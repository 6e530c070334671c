//! A test that finds nothing may be blind: these bugs it must find.

use doorbell_core::nic::{Bug, plant};

use super::program::Program;
use super::run::run;
use super::smaller::smaller;
use super::strategy::{Failed, check};

/// How many programs a bug may survive.
const MOST: u64 = 1000;

/// Takes the bug out again, also after a panic.
struct Planted;

impl Planted {
    fn new(bug: Bug) -> Self {
        plant(Some(bug));
        Self
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        plant(None);
    }
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        let _planted = Planted::new(bug);
        let found = (0..MOST).find_map(|seed| Some((seed, check::<Program>(seed, |_| {})?)));
        let Some((seed, Failed { program, why })) = found else {
            missed.push(bug);
            continue;
        };
        println!("{bug:?} is found by seed {seed}: {why}");
        let further = smaller(&program).into_iter().find(|less| run(less).result.is_err());
        assert!(further.is_none(), "more could have been taken away of\n{program}");
    }
    assert!(missed.is_empty(), "{MOST} programs do not find {missed:?}");
}
