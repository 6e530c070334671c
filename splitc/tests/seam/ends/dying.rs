//! A process whose program fails or panics while others wait.

use std::time::Duration;

use doorbell_splitc::{
    Apply, BoxError, Carrier, Config, Error, GlobalPtr, RunError, Spread, World, operators,
};

use crate::common::{by, carriers, outcome};
use crate::ends::Count;

const ADD: Apply<u64, u64, u64> = Apply::new("add", |value, by| {
    *value += by;
    *value
});

/// The process that dies.
const DEAD: usize = 1;

/// The operations that the other processes repeat until one fails.
#[derive(Clone, Copy, Debug)]
enum Waits {
    Reads,
    Writes,
    Gets,
    GetsMany,
    PutsAndSyncs,
    StoresAndFlushes,
    Adds,
    Applies,
    Gathers,
    Copies,
    Signals,
    AwaitsAWord,
    AwaitsStores,
    SyncsStores,
    Barriers,
    SplitBarriers,
    BegunReductions,
    Broadcasts,
    Allocates,
    Frees,
    OpensAnEpoch,
    Splits,
    OfATeam,
    Leaves,
}

const ALL: [Waits; 24] = [
    Waits::Reads,
    Waits::Writes,
    Waits::Gets,
    Waits::GetsMany,
    Waits::PutsAndSyncs,
    Waits::StoresAndFlushes,
    Waits::Adds,
    Waits::Applies,
    Waits::Gathers,
    Waits::Copies,
    Waits::Signals,
    Waits::AwaitsAWord,
    Waits::AwaitsStores,
    Waits::SyncsStores,
    Waits::Barriers,
    Waits::SplitBarriers,
    Waits::BegunReductions,
    Waits::Broadcasts,
    Waits::Allocates,
    Waits::Frees,
    Waits::OpensAnEpoch,
    Waits::Splits,
    Waits::OfATeam,
    Waits::Leaves,
];

/// The array and the pointers that a process works with.
struct Has {
    array: Spread<u64>,
    theirs: GlobalPtr<u64>,
    own: GlobalPtr<u64>,
}

/// Does something once, with the process that dies.
async fn once(world: &World, waits: Waits, has: &Has) -> Result<(), Error> {
    let place = || world.at(has.theirs);
    let span = || world.span(has.theirs, 90);
    match waits {
        Waits::Reads => place().read().await.map(drop),
        Waits::Writes => place().write(1).await,
        Waits::Gets => place().get()?.done().await.map(drop),
        Waits::GetsMany => span().get()?.done().await.map(drop),
        Waits::PutsAndSyncs => {
            span().put(&[7; 90])?;
            world.sync().await
        }
        Waits::StoresAndFlushes => {
            span().store(&[7; 90])?;
            world.flush().await
        }
        Waits::Adds => place().fetch_add(1).await.map(drop),
        Waits::Applies => place().apply(ADD, 1).await.map(drop),
        Waits::Gathers => has.array.gather(&[0, 100, 101])?.done().await.map(drop),
        Waits::Copies => world.copy(has.theirs, has.own, 90)?.done().await,
        Waits::Signals => span().put_signal(&[1; 90], place(), 1)?.done().await,
        Waits::AwaitsAWord => world.at(has.own).wait_until(|value| value == 1).await.map(drop),
        Waits::AwaitsStores => world.store_sync(8).await,
        Waits::SyncsStores => world.all_store_sync().await,
        Waits::Barriers => world.barrier().await,
        Waits::SplitBarriers => world.arrive()?.done().await,
        Waits::BegunReductions => {
            let begun = world.all_reduce(1_u64, operators::sum).begin()?;
            begun.done().await.map(drop)
        }
        Waits::Broadcasts => world.broadcast(DEAD, 1_u64).await.map(drop),
        Waits::Allocates => world.spread::<u64>(5).await.map(drop),
        Waits::Frees | Waits::Splits | Waits::OfATeam | Waits::Leaves | Waits::OpensAnEpoch => {
            unreachable!("it is done once only")
        }
    }
}

/// Does something until that fails.
async fn until_it_fails(world: &World, waits: Waits, has: Has) -> Error {
    loop {
        let done = match waits {
            Waits::Frees => return has.array.free().await.expect_err("process 1 does not"),
            Waits::OpensAnEpoch => {
                return has.array.private().await.map(drop).expect_err("process 1 does not");
            }
            Waits::Splits => {
                return world.split(Some(0), 0).await.expect_err("process 1 does not");
            }
            Waits::OfATeam => return world.barrier().await.expect_err("process 1 does not"),
            Waits::Leaves => return world.leave().await.expect_err("process 1 does not"),
            _ => once(world, waits, &has).await,
        };
        match done {
            Ok(()) => tokio::task::yield_now().await,
            Err(why) => return why,
        }
    }
}

/// How the process dies.
#[derive(Clone, Copy, Debug)]
enum Death {
    Fails,
    Panics,
}

#[track_caller]
fn plays(device: &str, carrier: Carrier, waits: Waits, death: Death, after: Duration) {
    // The process dies when the others are behind the barrier, which that might fail otherwise.
    let behind = Count::default();
    // Survivors end when both have their error: else the one would learn of the end of the other.
    let told = Count::default();
    let ended = outcome(3, device, by(carrier), async move |world| {
        world.define(ADD).await?;
        let array = world.blocked::<u64>(300).await?;
        let (theirs, own) = (array.pointer(100)?, world.allocate(100)?);
        let has = Has { array, theirs, own };
        // Of two processes, if it is the only other one, and of all.
        let team = match waits {
            Waits::OfATeam => world.split(Some(u32::from(world.rank() == 2)), 0).await?,
            _ => None,
        };
        world.barrier().await?;
        if world.rank() == DEAD {
            behind.reaches(2, &world).await;
            // However soon or late that is, the others get an error.
            tokio::time::sleep(after).await;
            match death {
                Death::Fails => return Err(BoxError::from("as it should")),
                Death::Panics => panic!("as it should"),
            }
        }
        behind.one_more();
        if let Some(team) = team.filter(|_| world.rank() == 0) {
            let why = team.barrier().await.expect_err("process 1 does not come");
            assert_eq!(why.gone(), Some(DEAD), "{why}");
        }
        let why = until_it_fails(&world, waits, has).await;
        assert_eq!(why.gone(), Some(DEAD), "process {}: {why}", world.rank());
        told.one_more();
        told.reaches(2, &world).await;
        // What begins later fails, too, and soon: by then the other survivor may have ended.
        let why = world.barrier().await.expect_err("process 1 does not come");
        assert!(why.gone().is_some(), "process {}, later: {why}", world.rank());
        Err::<(), _>(why.into())
    });
    let what = format!("{device}, {carrier}, {waits:?}, {death:?}, {after:?}");
    match (ended, death) {
        (Err(RunError::Failed { rank: DEAD, why }), Death::Fails) => {
            assert_eq!(why.to_string(), "as it should", "{what}");
        }
        (Err(RunError::Panicked { rank: DEAD, text }), Death::Panics) => {
            assert_eq!(text, "as it should", "{what}");
        }
        (other, _) => panic!("{what}: {other:?}"),
    }
}

fn plays_all(device: &str) {
    for &carrier in carriers(device) {
        for (number, waits) in ALL.into_iter().enumerate() {
            let death = [Death::Fails, Death::Panics][number % 2];
            let after = Duration::from_millis([0, 0, 10, 30][number % 4]);
            plays(device, carrier, waits, death, after);
        }
    }
}

#[test]
fn in_shared_memory_whatever_others_wait_for_the_death_of_a_process_is_an_error_that_names_it() {
    plays_all("shm");
}

#[test]
fn by_udp_whatever_others_wait_for_the_death_of_a_process_is_an_error_that_names_it() {
    plays_all("udp");
}

#[test]
fn before_the_first_collective_a_death_is_noticed_as_well() {
    for device in ["shm", "udp"] {
        for dead in 0..3 {
            // Whoever would look for the dead for as long as for one who is yet to come would hang.
            let start = Duration::from_secs(3600);
            let config = Config { start, ..crate::common::config() };
            let ended = outcome(3, device, config, async move |world| {
                if world.rank() == dead {
                    return Err(BoxError::from("as it should"));
                }
                let why = world.broadcast(dead, 1_u64).await.expect_err("the root is dead");
                assert_eq!(why.gone(), Some(dead), "{why}");
                Ok(())
            });
            assert!(
                matches!(ended, Err(RunError::Failed { rank, .. }) if rank == dead),
                "{device}, {dead}: {ended:?}"
            );
        }
    }
}
