//! Allocations that can't be had, and what is freed wrongly.

use doorbell_splitc::{Config, HeapError, RunError, World};

use crate::common::{config, outcome, run};
use crate::errors::{access, by_each, heap_error, invalid};

#[test]
fn a_full_heap_says_how_much_is_free_and_takes_what_fits() {
    by_each(async |world| {
        let heap = 1 << 20;
        let why = heap_error(world.blocked::<u64>(heap * world.size()).await);
        let HeapError::Full { asked, free, .. } = why else { panic!("{why}") };
        assert_eq!((asked, free), (8 << 20, 1 << 20));
        let why = heap_error(world.allocate::<u64>(heap));
        assert!(matches!(why, HeapError::Full { free, .. } if free == 1 << 20), "{why}");
        // All of it, by turns, again and again.
        for _ in 0..3 {
            let all = world.blocked::<u8>(heap * world.size()).await?;
            heap_error(world.spread::<u8>(1).await);
            heap_error(world.allocate::<u8>(1));
            all.free().await?;
            let all = world.allocate::<u8>(heap)?;
            heap_error(world.spread::<u8>(1).await);
            heap_error(world.allocate::<u8>(1));
            world.free(all)?;
            world.barrier().await?;
        }
        for len in [usize::MAX, usize::MAX / 8 + 1, 1 << 44] {
            invalid(world.allocate::<u64>(len));
            invalid(world.blocked::<u64>(len).await);
        }
        Ok(())
    });
}

#[test]
fn one_process_without_room_is_an_error_of_all() {
    by_each(async |world| {
        let own = (world.rank() == 1).then(|| world.allocate::<u8>(1 << 19)).transpose()?;
        let why = heap_error(world.blocked::<u8>((1 << 19) * world.size() + 1).await);
        let here = matches!(why, HeapError::Full { .. });
        let elsewhere = matches!(why, HeapError::FullElsewhere { .. });
        assert!(if world.rank() == 1 { here } else { elsewhere }, "{why}");
        let fits = world.blocked::<u8>((1 << 18) * world.size()).await?;
        if let Some(own) = own {
            world.free(own)?;
        }
        let all = world.blocked::<u8>((1 << 19) * world.size() + 1).await?;
        fits.free().await?;
        all.free().await
    });
}

#[test]
fn memory_that_is_allocated_again_is_zeros() {
    by_each(async |world| {
        for _ in 0..3 {
            let array = world.blocked::<u64>(100 * world.size()).await?;
            let own = world.allocate::<u64>(100)?;
            assert_eq!(world.span(own, 100).read().await?, [0; 100]);
            let theirs = world.all_gather(own).await?[(world.rank() + 1) % world.size()];
            world.span(theirs, 100).put(&[u64::MAX; 100])?;
            let mut part = array.private().await?;
            assert_eq!(*part, [0; 100]);
            part.fill(u64::MAX);
            drop(part);
            array.share().await?;
            array.free().await?;
            world.free(own)?;
        }
        Ok(())
    });
}

#[test]
fn what_is_freed_twice_or_was_never_allocated_is_refused() {
    by_each(async |world| {
        let array = world.spread::<u64>(10).await?;
        let (own, other) = (world.allocate::<u64>(10)?, world.allocate::<u64>(10)?);
        world.at(other).write(5).await?;
        let not = |why| matches!(why, HeapError::NotAllocated { .. });
        assert!(not(heap_error(world.free(own.local_add(1)))));
        assert!(not(heap_error(world.free(array.pointer(0)?.on(world.rank())))));
        world.free(own)?;
        assert!(not(heap_error(world.free(own))));
        access(world.free(own.on((world.rank() + 1) % world.size())));
        access(world.free(doorbell_splitc::GlobalPtr::<u64>::null()));
        assert_eq!(world.at(other).read().await?, 5);
        world.free(other)
    });
}

#[derive(Clone, Copy, zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable)]
#[repr(C, align(16))]
struct Aligned([u8; 16]);

#[test]
fn a_type_of_a_larger_alignment_than_heaps_have_is_refused() {
    by_each(async |world| {
        let alignment = |why| matches!(why, HeapError::Alignment { align: 16, most: 8, .. });
        assert!(alignment(heap_error(world.spread::<Aligned>(1).await)));
        assert!(alignment(heap_error(world.matrix::<u128>(1, 1).await)));
        assert!(alignment(heap_error(world.allocate::<u128>(1))));
        let bytes = world.allocate::<u8>(64)?;
        let cast = bytes.cast::<u128>();
        assert_eq!(cast.is_ok(), bytes.offset() % 16 == 0);
        Ok(())
    });
}

#[test]
fn arrays_that_differ_between_processes_are_allocated_nowhere() {
    by_each(async |world: World| {
        let odd = world.rank() == 1;
        let len = if odd { 11 } else { 10 };
        let what = |why| match why {
            HeapError::Differs { what, .. } => what,
            other => panic!("{other}"),
        };
        assert_eq!(what(heap_error(world.spread::<u64>(len).await)), "the length");
        assert_eq!(
            what(heap_error(world.spread_blocks::<u64>(40, len).await)),
            "the length of a block or row"
        );
        assert!(heap_error(world.matrix::<u8>(len, 40).await).to_string().contains("differs"));
        let made = match odd {
            true => world.spread::<u64>(10).await.map(drop),
            false => world.spread::<i64>(10).await.map(drop),
        };
        assert_eq!(what(heap_error(made)), "the type");
        let made = match odd {
            true => world.spread::<u64>(10).await.map(drop),
            false => world.spread::<u32>(10).await.map(drop),
        };
        assert_eq!(what(heap_error(made)), "the size of the type");
        let (one, other) = (world.spread::<u8>(10).await?, world.spread::<u8>(10).await?);
        let freed = if odd { one.free().await } else { other.free().await };
        assert_eq!(what(heap_error(freed)), "the allocation");
        // All of the heap that was taken is given back, but for these two.
        let rest = (1 << 20) - 128;
        world.blocked::<u8>(rest * world.size()).await?.free().await
    });
}

#[test]
fn a_heap_of_any_length_is_refused_or_works() {
    for heap in [0, 1, 4095, 4097, 1 << 16] {
        run(2, "shm", Config { heap, ..config() }, async move |world| {
            let all = world.blocked::<u8>(heap * 2).await;
            assert_eq!(all.is_ok(), heap > 0, "{heap}");
            if heap > 0 {
                all?.at(heap * 2 - 1).write(1).await?;
            }
            Ok(world.barrier().await?)
        });
    }
    for heap in [usize::MAX, usize::MAX - 4096, 1 << 44, (1 << 44) - 1, 1 << 63] {
        let refused = outcome(2, "shm", Config { heap, ..config() }, async |_| Ok(()));
        assert!(matches!(refused, Err(RunError::Join { .. })), "{heap}: {refused:?}");
    }
}

/// A block of no elements was taken for one of one element.
#[test]
fn an_array_of_blocks_without_elements_is_refused_and_the_argument_is_named() {
    by_each(async |world: World| {
        for len in [0, 10] {
            let why = world.spread_blocks::<u64>(len, 0).await.expect_err("no such blocks");
            let expected = format!("`block` is 0 in `spread_blocks({len}, 0)`");
            assert!(why.to_string().contains(&expected), "{why}");
        }
        // What has no elements has blocks all the same.
        assert!(world.blocked::<u64>(0).await?.is_empty());
        Ok(())
    });
}
