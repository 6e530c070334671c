//! Ranges that are wrong, or empty, or do not fit what was given.

use doorbell_splitc::AccessError;

use crate::errors::{access, by_each, invalid};

#[test]
fn a_range_that_leaves_its_allocation_says_where_that_ends() {
    by_each(async |world| {
        let array = world.blocked::<u32>(100 * world.size()).await?;
        let _behind = world.blocked::<u32>(100 * world.size()).await?;
        for rank in 0..world.size() {
            let first = array.pointer(100 * rank)?;
            let bounds = |why| matches!(why, AccessError::Bounds { .. });
            assert!(bounds(access(world.at(first.local_add(100)).read().await)));
            assert!(bounds(access(world.at(first.local_add(-1)).put(1))));
            let span = |from: isize, len| world.span(first.local_add(from), len);
            assert_eq!(span(0, 100).read().await?.len(), 100);
            for (from, len) in [
                (0, 101),
                (1, 100),
                (-1, 2),
                (100, 1),
                (0, usize::MAX),
                (0, usize::MAX / 4 + 2),
                (50, 1 << 62),
            ] {
                assert!(bounds(access(span(from, len).read().await)), "{from} {len}");
                assert!(bounds(access(span(from, len).get())), "{from} {len}");
                let copied = world.copy(first.local_add(from), first, len);
                assert!(bounds(access(copied)), "{from} {len}");
            }
            for (len, blocks, step) in [
                (1, 2, 100),
                (1, 101, 1),
                (50, 2, 51),
                (1, usize::MAX, 1),
                (1, 2, usize::MAX),
                (1, 3, usize::MAX / 2),
                (usize::MAX, 2, usize::MAX),
                (1, usize::MAX, usize::MAX),
            ] {
                let strided = span(0, len).strided(blocks, step);
                assert!(bounds(access(strided.read().await)), "{len} {blocks} {step}");
                assert!(bounds(access(span(0, len).strided(blocks, step).get())));
            }
            let strided = span(0, 1).strided(100, 1);
            assert_eq!(strided.read().await?.len(), 100);
        }
        let (own, heap) = (world.allocate::<u64>(4)?, 1 << 20);
        let beyond = access(world.at(own.local_add(heap)).read().await);
        assert!(matches!(beyond, AccessError::Heap { .. }), "{beyond:?}");
        let beyond = access(world.span(own, heap as usize).get());
        assert!(matches!(beyond, AccessError::Heap { .. }), "{beyond:?}");
        let huge = access(world.span(own, usize::MAX).get());
        assert!(matches!(huge, AccessError::Heap { .. }), "{huge:?}");
        Ok(())
    });
}

#[test]
fn blocks_that_overlap_are_refused() {
    by_each(async |world| {
        let array = world.blocked::<u32>(100 * world.size()).await?;
        for (len, blocks, step) in [(2, 2, 1), (2, 2, 0), (3, usize::MAX, 2), (1, 2, 0)] {
            let strided = world.span(array.pointer(0)?, len).strided(blocks, step);
            assert!(invalid(strided.read().await).contains("overlap"));
            assert!(invalid(strided.get()).contains("overlap"));
            let values = vec![0; strided.len().min(10)];
            assert!(strided.put(&values).is_err() && strided.store(&values).is_err());
        }
        Ok(())
    });
}

#[test]
fn one_block_may_have_any_step_and_no_block_any_length() {
    by_each(async |world| {
        let array = world.blocked::<u64>(10 * world.size()).await?;
        for rank in 0..world.size() {
            let first = array.pointer(10 * rank)?;
            for step in [0, 1, usize::MAX] {
                let one = world.span(first, 2).strided(1, step);
                assert_eq!(one.read().await?, [0; 2]);
                one.put(&[0; 2])?.done().await?;
                one.store(&[0; 2])?;
                let none = world.span(first, 2).strided(0, step);
                assert_eq!(none.read().await?, []);
                none.put(&[])?.done().await?;
                let empty = world.span(first, 0).strided(usize::MAX, 0);
                assert_eq!(empty.read().await?, []);
                empty.put(&[])?.done().await?;
                empty.store(&[])?;
            }
        }
        world.all_store_sync().await
    });
}

#[test]
fn a_span_that_is_strided_twice_is_refused_and_nothing_is_written() {
    by_each(async |world| {
        let array = world.blocked::<u64>(100 * world.size()).await?;
        let signals = world.spread::<u64>(world.size()).await?;
        for rank in 0..world.size() {
            let first = array.pointer(100 * rank)?;
            let twice = [
                world.span(first, 2).strided(3, 4).strided(2, 50),
                world.span(first, 2).strided(3, 4).strided(1, 2),
                world.span(first, 2).strided(1, 5).strided(2, 5),
                world.span(first, 2).strided(0, 2).strided(2, 2),
                world.span(first, 1).strided(2, 2).strided(2, 4).strided(2, 8),
            ];
            for span in twice {
                let (values, mut into) = (vec![7; span.len()], vec![0; span.len()]);
                let refusals = [
                    invalid(span.read().await),
                    invalid(span.read_into(&mut into).await),
                    invalid(span.write(&values).await),
                    invalid(span.get()),
                    invalid(span.put(&values)),
                    invalid(span.put_signal(&values, signals.at(rank), 1)),
                    invalid(span.store(&values)),
                    invalid(span.store_async(&values).await),
                ];
                let says = |why: &String| why.contains("strided again");
                assert!(refusals.iter().all(says), "{refusals:?}");
            }
        }
        world.all_store_sync().await?;
        let own = world.span(array.pointer(100 * world.rank())?, 100);
        assert_eq!(own.read().await?, [0; 100]);
        assert_eq!(signals.at(world.rank()).read().await?, 0);
        world.barrier().await
    });
}

#[test]
fn operations_on_nothing_are_done() {
    by_each(async |world| {
        let array = world.blocked::<u64>(10 * world.size()).await?;
        let nothings = world.blocked::<()>(10).await?;
        let signals = world.spread::<u64>(world.size()).await?;
        for rank in 0..world.size() {
            let theirs = array.pointer(10 * rank)?;
            // Just behind the last one there is room for nothing.
            for ptr in [theirs, theirs.local_add(10)] {
                assert_eq!(world.span(ptr, 0).read().await?, []);
                world.span(ptr, 0).write(&[]).await?;
                world.span(ptr, 0).store(&[])?;
            }
            let own = world.allocate::<u64>(1)?;
            world.copy(theirs, own, 0)?.done().await?;
            world.copy(own, theirs, 0)?.done().await?;
            let signal = world.span(theirs, 0).put_signal(&[], signals.at(rank), 1)?;
            signal.done().await?;
            let nothing = world.at(nothings.pointer(0)?.on(rank));
            nothing.read().await?;
            world.at(nothings.pointer(0)?.on(rank)).write(()).await?;
            world.at(nothings.pointer(0)?.on(rank)).put(())?.done().await?;
            world.at(nothings.pointer(0)?.on(rank)).get()?.done().await?;
            world.at(nothings.pointer(0)?.on(rank)).store(())?;
            let all = world.span(nothings.pointer(0)?.on(rank), usize::MAX);
            assert_eq!(all.read().await?.len(), usize::MAX);
        }
        assert_eq!(array.gather(&[])?.done().await?, []);
        array.scatter(&[], &[])?.done().await?;
        world.all_store_sync().await?;
        assert_eq!(signals.at(world.rank()).read().await?, world.size() as u64);
        Ok(())
    });
}

#[test]
fn values_that_are_too_many_or_too_few_are_refused() {
    by_each(async |world| {
        let array = world.blocked::<u64>(10 * world.size()).await?;
        for rank in 0..world.size() {
            let span = world.span(array.pointer(10 * rank)?, 3);
            for wrong in [&[][..], &[1, 2], &[1; 4]] {
                assert!(invalid(span.put(wrong)).contains("span of 3"));
                assert!(invalid(span.write(wrong).await).contains("span of 3"));
                assert!(invalid(span.store(wrong)).contains("span of 3"));
                assert!(invalid(span.store_async(wrong).await).contains("span of 3"));
                let signal = span.put_signal(wrong, array.at(10 * rank + 5), 1);
                assert!(invalid(signal).contains("span of 3"));
            }
            assert!(invalid(array.scatter(&[1, 2], &[1])).contains("2 indices and 1 values"));
        }
        world.barrier().await?;
        let all = world.span(array.pointer(10 * world.rank())?, 10).read().await?;
        assert_eq!(all, [0; 10], "nothing was written, and no signal given");
        Ok(())
    });
}

#[test]
fn parts_of_a_matrix_are_of_one_process() {
    by_each(async |world| {
        let size = world.size();
        let matrix = world.matrix_on::<u16>(4, 3 * size, [1, size]).await?;
        assert_eq!(matrix.row(1, 0..3)?.read().await?, [0; 3]);
        assert_eq!(matrix.column(0..4, 3 * size - 1)?.read().await?, [0; 4]);
        assert!(invalid(matrix.row(0, 0..4)).contains("process 0's and process 1's"));
        assert!(matches!(access(matrix.row(0, 1..3 * size + 1)), AccessError::Index { .. }));
        assert!(matches!(access(matrix.row(usize::MAX, 0..3)), AccessError::Index { .. }));
        assert!(matches!(access(matrix.column(0..5, 0)), AccessError::Index { .. }));
        assert!(matches!(access(matrix.column(0..4, usize::MAX)), AccessError::Index { .. }));
        #[allow(clippy::reversed_empty_ranges)]
        let backwards = matrix.row(0, 2..1)?;
        assert_eq!(backwards.read().await?, []);
        for grid in [[0, 0], [size + 1, 1], [usize::MAX, 2], [1 << 32, 1 << 32]] {
            assert!(invalid(world.matrix_on::<u8>(4, 4, grid).await).contains("grid"));
        }
        Ok(())
    });
}
