//! A killed process is noticed by a loop of operations on its mapped memory, though none of them
//! has to wait for anything.

use doorbell_kit::child::{self, Child};
use doorbell_splitc::{Carrier, Error, GlobalPtr, Spread, World};

use crate::common::in_time;
use crate::ends::killed::{config, dies, open, run};

/// The operation of the loop.
#[derive(Clone, Copy, Debug)]
enum Does {
    Reads,
    Writes,
    Gets,
    PutsAndSyncs,
    PutsAlone,
    Adds,
    Swaps,
    StoresAlone,
    StoresAndPolls,
    StoresSoon,
    StoresAdds,
    StoresAddsSoon,
    ReadsASpan,
    ReadsInto,
    WritesASpan,
    StoresASpanSoon,
    Gathers,
    Scatters,
    Copies,
    Signals,
}

const ALL: [Does; 20] = [
    Does::Reads,
    Does::Writes,
    Does::Gets,
    Does::PutsAndSyncs,
    Does::PutsAlone,
    Does::Adds,
    Does::Swaps,
    Does::StoresAlone,
    Does::StoresAndPolls,
    Does::StoresSoon,
    Does::StoresAdds,
    Does::StoresAddsSoon,
    Does::ReadsASpan,
    Does::ReadsInto,
    Does::WritesASpan,
    Does::StoresASpanSoon,
    Does::Gathers,
    Does::Scatters,
    Does::Copies,
    Does::Signals,
];

/// Does something once to the memory of the other process.
async fn once(
    world: &World,
    array: &Spread<u64>,
    own: GlobalPtr<u64>,
    does: Does,
) -> Result<(), Error> {
    let place = || array.at(2001);
    let theirs = array.pointer(2001)?;
    let span = || world.span(theirs, 3);
    match does {
        Does::Reads => place().read().await.map(drop),
        Does::Writes => place().write(1).await,
        Does::Gets => place().get()?.done().await.map(drop),
        Does::PutsAndSyncs => {
            place().put(1)?;
            world.sync().await
        }
        Does::PutsAlone => place().put(1).map(drop),
        Does::Adds => place().fetch_add(1).await.map(drop),
        Does::Swaps => place().compare_swap(0, 1).await.map(drop),
        Does::StoresAlone => place().store(1),
        Does::StoresAndPolls => {
            world.poll();
            place().store(1)
        }
        Does::StoresSoon => place().store_async(1).await,
        Does::StoresAdds => place().store_add(1),
        Does::StoresAddsSoon => place().store_add_async(1).await,
        Does::ReadsASpan => span().read().await.map(drop),
        Does::ReadsInto => span().read_into(&mut [0; 3]).await,
        Does::WritesASpan => span().write(&[1; 3]).await,
        Does::StoresASpanSoon => span().store_async(&[1; 3]).await,
        Does::Gathers => array.gather(&[1, 2001, 2002])?.done().await.map(drop),
        Does::Scatters => array.scatter(&[1, 2001], &[1, 1])?.done().await,
        Does::Copies => world.copy(theirs, own, 3)?.done().await,
        Does::Signals => span().put_signal(&[1; 3], array.at(2005), 1)?.done().await,
    }
}

/// Kills another process while this one does something to its memory in a loop that lets no other
/// task of the thread run.
fn notices(does: Does, test: &str) {
    let mut other = Child::start(test, &format!("shm {}", Carrier::Mapped), None);
    let address = other.hear();
    let nic = open("shm", &std::process::id().to_string());
    other.say(nic.address());
    run(async {
        let addresses = [nic.address().to_string(), address];
        let config = config(Carrier::Mapped);
        let world = World::join_on(&nic, 0, &addresses, &config).await.expect("a world");
        let array = world.blocked::<u64>(4000).await.expect("room");
        let own = world.allocate::<u64>(3).expect("room");
        world.barrier().await.expect("it is there");
        let killer = std::thread::spawn(move || {
            assert_eq!(other.hear(), "ready");
            other.kill();
        });
        let why = loop {
            if let Err(why) = once(&world, &array, own, does).await {
                break why;
            }
        };
        assert_eq!(why.gone(), Some(1), "{does:?}: {why}");
        killer.join().expect("it was killed");
    });
}

#[test]
fn a_loop_of_operations_on_mapped_memory_ends_when_their_owner_is_killed() {
    if let Some(part) = child::part() {
        return dies(&part);
    }
    let test = "ends::tight::a_loop_of_operations_on_mapped_memory_ends_when_their_owner_is_killed";
    // The loop may block its thread for ever if no operation notices the end.
    in_time(move || ALL.into_iter().for_each(|does| notices(does, test)));
}
