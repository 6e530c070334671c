//! Collectives in which processes do not do the same, handles that are asked too soon, and carriers
//! that are not there.

use doorbell_splitc::{Carrier, Config, ErrorKind, RunError, operators};

use crate::common::{by, config, outcome, run};
use crate::errors::{by_each, invalid};

#[test]
fn values_of_different_lengths_or_types_are_an_error_of_each_process() {
    by_each(async |world| {
        let rank = world.rank();
        let given = vec![1_u32; 3 + usize::from(rank == 1)];
        invalid(world.all_reduce_vec(&given, operators::sum).await);
        let odd = rank == 1;
        let mixed = match odd {
            true => world.all_reduce(1_u64, operators::sum).await.map(drop),
            false => world.all_reduce(1_u32, operators::sum).await.map(drop),
        };
        invalid(mixed);
        let mixed = match odd {
            true => world.all_gather(1_u64).await.map(drop),
            false => world.all_gather([1_u8; 3]).await.map(drop),
        };
        invalid(mixed);
        assert_eq!(world.all_reduce_vec::<u8>(&[], |one, _| one).await?, []);
        Ok(())
    });
}

/// Each process got a value, which was garbage.
#[test]
fn values_of_different_types_of_one_size_are_an_error_of_each_process_that_gets_some() {
    by_each(async |world| {
        let odd = world.rank() == 1;
        let mixed = match odd {
            true => world.all_reduce(1_u64, operators::sum).await.map(drop),
            false => world.all_reduce(1.0_f64, operators::sum).await.map(drop),
        };
        invalid(mixed);
        let mixed = match odd {
            true => world.all_to_all(&vec![1_i32; world.size()]).await.map(drop),
            false => world.all_to_all(&vec![1_u32; world.size()]).await.map(drop),
        };
        invalid(mixed);
        match odd {
            true => drop(invalid(world.broadcast(0, 1_u64).await.map(drop))),
            false => assert_eq!(world.broadcast(0, 1.0_f64).await?, 1.0),
        }
        Ok(())
    });
}

#[test]
fn different_operators_of_the_library_are_an_error_of_each_process() {
    by_each(async |world| {
        let odd = world.rank() == 1;
        invalid(match odd {
            true => world.all_reduce(1_u64, operators::sum).await,
            false => world.all_reduce(1_u64, operators::max).await,
        });
        // Nobody can tell what an operator of the program's own computes.
        let own = match odd {
            true => world.all_reduce(1_u64, operators::sum).await?,
            false => world.all_reduce(1_u64, |one, other| one + other).await?,
        };
        assert_eq!(own, world.size() as u64);
        Ok(())
    });
}

#[test]
fn a_root_that_no_process_is_gives_an_error_to_each() {
    by_each(async |world| {
        let size = world.size();
        let why = world.broadcast(size, 1_u8).await.unwrap_err();
        assert!(matches!(why.kind(), ErrorKind::Group(_)), "{why}");
        assert!(world.gather(usize::MAX, 1_u8).await.is_err());
        assert!(world.reduce(size, 1_u8, |one, _| one).await.is_err());
        Ok(())
    });
}

#[test]
fn too_few_or_too_many_values_for_the_processes_are_an_error_and_no_panic() {
    for (size, device) in [(1, "shm"), (3, "shm"), (3, "udp")] {
        run(size, device, config(), async |world| {
            let values = vec![0_u64; world.size() + 1];
            assert!(world.all_to_all(&values).await.is_err());
            Ok(())
        });
        for wrong in [size - 1, size + 1] {
            let ended = outcome(size, device, config(), async move |world| {
                let values = vec![0_u64; wrong];
                let values = (world.rank() == 0).then_some(&values[..]);
                Ok(world.scatter(0, values).await.map(drop)?)
            });
            let why = ended.unwrap_err().to_string();
            assert!(why.contains("process 0"), "the process with the wrong values is named: {why}");
        }
    }
}

#[test]
fn different_collectives_at_one_place_are_an_error_that_names_both() {
    for odd in [0, 1, 2] {
        let ended = outcome(3, "shm", config(), async move |world| {
            match world.rank() == odd {
                true => world.all_reduce(1_u32, operators::max).await.map(drop)?,
                false => world.broadcast(0, 1_u8).await.map(drop)?,
            }
            world.barrier().await?;
            Ok(())
        });
        let why = ended.unwrap_err().to_string();
        let known = ["same collectives", "different types or lengths"];
        assert!(known.iter().any(|text| why.contains(text)), "{why}");
    }
}

#[test]
fn a_value_is_there_after_a_sync_and_not_before() {
    for carrier in [Carrier::OneSided, Carrier::Messages, Carrier::Mixed] {
        run(2, "shm", by(carrier), async |world| {
            let array = world.blocked::<u64>(2000).await?;
            let other = 1000 * (1 - world.rank());
            array.at(other).write(3).await?;
            world.barrier().await?;
            let not_yet = |why: doorbell_splitc::Error| matches!(why.kind(), ErrorKind::NotSynced);
            let own = 1000 - other;
            assert_eq!(array.at(own).get()?.value()?, 3, "the own memory answers at once");
            assert!(not_yet(array.at(other).get()?.value().unwrap_err()));
            let span = world.span(array.pointer(other)?, 1000);
            assert!(not_yet(span.get()?.values().unwrap_err()));
            assert!(not_yet(array.gather(&[other, own])?.values().unwrap_err()));
            // The values of handles that are gone may come, and go nowhere.
            let kept = (array.at(other).get()?, array.at(other + 1).get()?, span.get()?);
            drop((array.at(other).get()?, span.get()?, array.gather(&[other; 50])?));
            let adds = array.at(other + 1).get_add(1)?;
            world.sync().await?;
            assert_eq!(kept.0.value()?, 3);
            assert!(kept.1.value()? <= 1 && adds.value()? == 0);
            assert_eq!(kept.2.values()?[0], 3);
            Ok(world.barrier().await?)
        });
    }
}

#[test]
fn the_mapped_carrier_is_refused_where_memory_is_not_mapped() {
    let ended = outcome(2, "udp", by(Carrier::Mapped), async |_| Ok(()));
    assert!(matches!(ended, Err(RunError::Join { .. })), "{ended:?}");
    run(2, "udp", config(), async |world| {
        let other = 1 - world.rank();
        let why = world.set_carrier(other, Carrier::Mapped).unwrap_err();
        assert!(matches!(why.kind(), ErrorKind::NoCarrier { .. }), "{why}");
        assert_eq!(world.carrier(other)?, Carrier::Mixed);
        crate::errors::access(world.set_carrier(2, Carrier::Messages));
        crate::errors::access(world.carrier(usize::MAX));
        Ok(world.barrier().await?)
    });
}

#[test]
fn few_credits_are_enough_and_none_is_an_error() {
    for credits in [1, 2, 3] {
        run(2, "shm", Config { credits, ..by(Carrier::Messages) }, async |world| {
            let array = world.blocked::<u64>(2 << 15).await?;
            let other = (1 << 15) * (1 - world.rank());
            for index in 0..1 << 15 {
                array.at(other + index).store(index as u64)?;
                array.at(other + index).put(index as u64)?;
            }
            world.sync().await?;
            world.all_store_sync().await?;
            assert_eq!(array.private().await?[(1 << 15) - 1], (1 << 15) - 1);
            Ok(array.share().await?)
        });
    }
    for credits in [0, usize::MAX] {
        let ended = outcome(2, "shm", Config { credits, ..config() }, async |_| Ok(()));
        assert!(matches!(ended, Err(RunError::Join { .. })), "{credits}: {ended:?}");
    }
}
