//! Pointers and indices that are wrong.

use doorbell_kit::effort;
use doorbell_simulation::Luck;
use doorbell_splitc::{AccessError, Apply, Error, GlobalPtr, World};
use zerocopy::{FromBytes, IntoBytes};

use crate::common::run;
use crate::errors::{access, by_each};

const ADD: Apply<u64, u64, u64> = Apply::new("add", |value, by| {
    *value = value.wrapping_add(by);
    by
});

/// Tries everything that there is to do with a pointer, and returns what each finds wrong.
async fn all_errors(world: &World, ptr: GlobalPtr<u64>) -> Vec<AccessError> {
    let at = || world.at(ptr);
    let span = || world.span(ptr, 2);
    let own = world.allocate::<u64>(2).expect("there is room");
    let errors = vec![
        access(at().read().await),
        access(at().write(1).await),
        access(at().get()),
        access(at().put(1)),
        access(at().store(1)),
        access(at().store_async(1).await),
        access(at().fetch_add(1).await),
        access(at().get_add(1)),
        access(at().put_add(1)),
        access(at().store_add(1)),
        access(at().store_add_async(1).await),
        access(at().swap(1).await),
        access(at().compare_swap(0, 1).await),
        access(at().fetch_min(1).await),
        access(at().fetch_max(1).await),
        access(at().store_min(1)),
        access(at().store_max(1)),
        access(at().apply(ADD, 1).await),
        access(at().get_apply(ADD, 1)),
        access(at().wait_until(|_| true).await),
        access(world.span(ptr, 2).put_signal(&[1, 2], at(), 1)),
        access(span().read().await),
        access(span().write(&[1, 2]).await),
        access(span().get()),
        access(span().put(&[1, 2])),
        access(span().store(&[1, 2])),
        access(span().store_async(&[1, 2]).await),
        access(world.copy(ptr, own, 2)),
        access(world.copy(own, ptr, 2)),
    ];
    world.free(own).expect("it is allocated");
    errors
}

#[test]
fn each_operation_says_that_a_pointer_is_null() {
    by_each(async |world| {
        world.define(ADD).await?;
        let errors = all_errors(&world, GlobalPtr::null()).await;
        assert!(errors.iter().all(|why| *why == AccessError::Null), "{errors:?}");
        Ok(())
    });
}

#[test]
fn each_operation_names_a_rank_that_no_process_has() {
    by_each(async |world| {
        world.define(ADD).await?;
        let (array, size) = (world.spread::<u64>(10).await?, world.size());
        let ptr = array.pointer(0)?;
        for (wrong, rank) in [
            (ptr.on(size), size),
            (ptr.on(usize::MAX), u32::MAX as usize),
            (world.allocate::<u64>(2)?.on(size + 7), size + 7),
        ] {
            let errors = all_errors(&world, wrong).await;
            let expected = AccessError::Rank { rank, size };
            assert!(errors.iter().all(|why| *why == expected), "{errors:?}");
        }
        Ok(())
    });
}

#[test]
fn each_operation_names_an_index_that_the_array_does_not_have() {
    by_each(async |world| {
        let array = world.spread_blocks::<u64>(10, 3).await?;
        let empty = world.spread::<u64>(0).await?;
        for index in [10, 11, usize::MAX] {
            let expected = AccessError::Index { index, len: 10 };
            assert_eq!(access(array.at(index).read().await), expected);
            assert_eq!(access(array.at(index).put(1)), expected);
            assert_eq!(access(array.at(index).store(1)), expected);
            assert_eq!(access(array.at(index).fetch_add(1).await), expected);
            assert_eq!(access(array.gather(&[0, index])), expected);
            assert_eq!(access(array.scatter(&[0, index], &[0, 0])), expected);
            assert_eq!(access(array.pointer(index)), expected);
            assert_eq!(access(array.owner(index)), expected);
            let len = 0;
            assert_eq!(access(empty.at(index).read().await), AccessError::Index { index, len });
        }
        world.sync().await?;
        let matrix = world.matrix::<u32>(4, 6).await?;
        for (row, column, index, len) in [
            (4, 0, 4, 4),
            (0, 6, 6, 6),
            (usize::MAX, 0, usize::MAX, 4),
            (1, usize::MAX, usize::MAX, 6),
        ] {
            let expected = AccessError::Index { index, len };
            assert_eq!(access(matrix.at(row, column).read().await), expected);
            assert_eq!(access(matrix.at(row, column).store(1)), expected);
            assert_eq!(access(matrix.pointer(row, column)), expected);
            assert_eq!(access(matrix.owner(row, column)), expected);
            assert_eq!(access(matrix.row(row, column..column)), expected);
            assert_eq!(access(matrix.column(row..row, column)), expected);
        }
        Ok(())
    });
}

#[test]
fn each_operation_says_that_an_array_was_freed() {
    by_each(async |world| {
        world.define(ADD).await?;
        let (array, other) = (world.spread::<u64>(10).await?, world.spread::<u64>(10).await?);
        let (ptr, alive) = (array.pointer(1)?, other.pointer(1)?);
        let block = 1;
        array.free().await?;
        // What lies at the same place now has another number.
        let new = world.spread::<u64>(10).await?;
        for ptr in [ptr, ptr.on(0)] {
            let errors = all_errors(&world, ptr).await;
            assert!(errors.iter().all(|why| *why == AccessError::Freed { block }), "{errors:?}");
        }
        assert_eq!(new.index_of(ptr), None);
        assert_eq!(world.at(alive).read().await?, 0);
        Ok(())
    });
}

#[test]
fn each_operation_of_each_process_says_that_an_array_is_private() {
    by_each(async |world| {
        world.define(ADD).await?;
        let array = world.blocked::<u64>(4 * world.size()).await?;
        array.at(0).put(5)?;
        let part = array.private().await?;
        for rank in 0..world.size() {
            let errors = all_errors(&world, array.pointer(4 * rank)?).await;
            let expected = AccessError::Private { block: 1 };
            assert!(errors.iter().all(|why| *why == expected), "{errors:?}");
            assert_eq!(access(array.gather(&[4 * rank])), expected);
        }
        assert_eq!(part[0], if world.rank() == 0 { 5 } else { 0 });
        // Neither ends an epoch that lends memory, nor begins one more.
        crate::errors::invalid(array.share().await);
        crate::errors::invalid(array.private().await);
        drop(part);
        array.share().await?;
        assert_eq!(array.at(0).read().await?, 5);
        Ok(())
    });
}

#[test]
fn a_cast_or_an_access_says_that_a_type_can_not_begin_there() {
    by_each(async |world| {
        let bytes = world.blocked::<u8>(64 * world.size()).await?;
        for rank in 0..world.size() {
            let first = bytes.pointer(64 * rank)?;
            let odd = first.local_add(1);
            assert!(odd.cast::<u64>().unwrap_err().to_string().contains("no multiple of 8"));
            assert!(odd.cast::<u16>().is_err() && odd.cast::<[u8; 9]>().is_ok());
            assert!(first.local_add(4).cast::<u64>().is_err());
            world.at(first.cast::<[u32; 3]>().expect("it is aligned").local_add(1)).read().await?;
            // Made of bytes, a pointer may be anything.
            let mut raw = first.cast::<u64>().expect("it is aligned");
            raw.as_mut_bytes()[8] |= 4;
            let misaligned = |align| AccessError::Misaligned { offset: raw.offset(), align };
            assert_eq!(access(world.at(raw).read().await), misaligned(8));
            assert_eq!(access(world.at(raw).store_add(1)), misaligned(8));
            assert_eq!(access(world.span(raw, 2).get()), misaligned(8));
            let mut raw = first.cast::<u32>().expect("it is aligned");
            raw.as_mut_bytes()[8] |= 2;
            assert_eq!(
                access(world.at(raw).fetch_add(1).await),
                AccessError::Misaligned { offset: raw.offset(), align: 4 }
            );
        }
        Ok(())
    });
}

#[test]
fn what_is_for_the_owner_alone_names_the_owner() {
    by_each(async |world| {
        let array = world.spread::<u64>(3 * world.size()).await?;
        let other = (world.rank() + 1) % world.size();
        let expected = AccessError::NotMine { owner: other };
        assert_eq!(access(array.at(other).wait_until(|_| true).await), expected);
        let theirs = array.pointer(other)?;
        let mine = array.pointer(world.rank())?;
        assert_eq!(access(world.copy(theirs, theirs.local_add(1), 1)), expected);
        assert_eq!(access(world.free(theirs)), expected);
        let signalled = world.span(theirs, 1).put_signal(&[1], world.at(mine), 1);
        assert_eq!(access(signalled), expected);
        assert_eq!(array.at(other).read().await?, 0, "nothing is written");
        Ok(())
    });
}

/// Does whatever there is to do with a pointer, and only demands that it ends.
async fn try_all(world: &World, raw: [u8; 16]) -> Result<usize, Error> {
    let ptr = GlobalPtr::<u64>::read_from_bytes(&raw).expect("16 bytes");
    let small = GlobalPtr::<u8>::read_from_bytes(&raw).expect("16 bytes");
    let long = GlobalPtr::<[u64; 600]>::read_from_bytes(&raw).expect("16 bytes");
    let own = world.allocate::<u64>(8)?;
    let done = [
        world.at(ptr).read().await.is_ok(),
        world.at(ptr).get().is_ok(),
        world.at(ptr).put(1).is_ok(),
        world.at(ptr).store(1).is_ok(),
        world.at(ptr).fetch_add(1).await.is_ok(),
        world.at(ptr).compare_swap(1, 2).await.is_ok(),
        world.at(ptr).store_max(7).is_ok(),
        world.at(small).write(1).await.is_ok(),
        world.at(small).apply(crate::errors::functions::BYTE, 1).await.is_ok(),
        world.at(long).read().await.is_ok(),
        world.at(long).put([3; 600]).is_ok(),
        world.span(ptr, 5).strided(2, 9).read().await.is_ok(),
        world.span(small, usize::MAX).get().is_ok(),
        world.span(ptr, 3).put(&[1, 2, 3]).is_ok(),
        world.span(ptr, 1).put_signal(&[1], world.at(ptr.local_add(1)), 1).is_ok(),
        world.copy(ptr, own, 8).is_ok(),
        world.copy(own, ptr, 8).is_ok(),
        world.free(ptr).is_ok(),
    ];
    let _ = (ptr.local_add(isize::MAX), ptr.local_add(isize::MIN), ptr.cast::<u32>());
    let _ = (ptr.global_add(isize::MAX, 3), ptr.global_add(isize::MIN, 1), ptr.to_string());
    world.sync().await?;
    world.free(own)?;
    Ok(done.into_iter().filter(|done| *done).count())
}

#[test]
fn pointers_of_random_bytes_give_errors_or_reach_the_heap_and_nothing_panics() {
    by_each(async |world| {
        world.define(crate::errors::functions::BYTE).await?;
        let array = world.spread::<u64>(10_000).await?;
        let mut luck = Luck::stream(7, world.rank() as u32);
        let mut done = 0;
        for _ in 0..effort(300, 10_000) {
            // Bytes that are small now and then, so that some are ranks, allocations and places.
            let rank = luck.draw() as u32 >> luck.below(32).max(luck.below(2) * 31);
            let block =
                [luck.draw() as u32, 0, 1, 1, u32::MAX, u32::MAX - 1][luck.below(6) as usize];
            let offset = match luck.below(3) {
                0 => luck.draw() >> luck.below(64),
                1 => luck.below(100_000),
                _ => 8 * luck.below(10_000),
            };
            let mut raw = [0; 16];
            raw[..4].copy_from_slice(&rank.to_ne_bytes());
            raw[4..8].copy_from_slice(&block.to_ne_bytes());
            raw[8..].copy_from_slice(&offset.to_ne_bytes());
            done += try_all(&world, raw).await?;
        }
        assert!(done > 0, "some reach memory");
        assert_eq!(world.refused(), 0, "what is wrong is found where the access begins");
        assert!(array.index_of(GlobalPtr::null()).is_none());
        world.all_store_sync().await
    });
}

#[test]
fn arithmetic_of_pointers_wraps_around_and_comes_back() {
    run(3, "shm", crate::common::config(), async |world| {
        let array = world.spread::<u64>(90).await?;
        for index in [0, 1, 2, 31, 89] {
            let ptr = array.pointer(index)?;
            for by in 0..90 - index {
                assert_eq!(ptr.global_add(by as isize, 3), array.pointer(index + by)?);
                let back = array.pointer(index + by)?.global_add(-(by as isize), 3);
                assert_eq!(back, ptr);
            }
            assert_eq!(ptr.local_add(1 << 40).local_add(-(1 << 40)), ptr);
            // No pointer goes so far that it comes round to an element.
            let whole = 1 << 61;
            for far in [isize::MAX, isize::MIN, whole, whole + 1, 1 - whole, -whole] {
                let pointer = ptr.local_add(far);
                assert_eq!(pointer.rank(), ptr.rank());
                let why = crate::errors::access(world.at(pointer).read().await);
                assert!(matches!(why, AccessError::Bounds { .. }), "{far}: {why}");
            }
        }
        Ok(world.barrier().await?)
    });
}
