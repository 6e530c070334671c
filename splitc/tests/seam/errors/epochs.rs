//! Private epochs that overlap in one process, and pointers into a private slice.

use std::future::Future;

use doorbell_splitc::{AccessError, Error, GlobalPtr, Spread, World};
use zerocopy::{FromBytes, IntoBytes};

use crate::errors::{access, by_each, invalid};

/// Awaits two futures of process 0 at the same time, of which the second is to be refused. All
/// other processes do what the first one is for, behind that: so the first one waits for them. The
/// flags say to each process how many turns it may take.
async fn second_is_refused<T>(
    (world, flags, turn): (&World, &Spread<u64>, u64),
    first: impl Future<Output = Result<T, Error>>,
    second: impl Future<Output = Result<(), Error>>,
) -> Result<T, Error> {
    if world.rank() > 0 {
        flags.at(world.rank()).wait_until(|turns| turns >= turn).await?;
        return first.await;
    }
    let second = async {
        let why = invalid(second.await);
        assert!(why.contains("still under way"), "{why}");
        for rank in 1..world.size() {
            flags.at(rank).write(turn).await?;
        }
        Ok::<_, Error>(())
    };
    let (first, second) = tokio::join!(first, second);
    second.and(first)
}

/// Has process 0 overlap each two of `private` and `share` of an array, of which an element of each
/// process's own is given by its pointer.
macro_rules! overlap {
    ($world:ident, $array:ident, $own:expr) => {{
        let (world, own): (&World, GlobalPtr<u64>) = (&$world, $own);
        let flags = &world.spread::<u64>(world.size()).await?;
        let opens = async || $array.private().await.map(drop);

        // `private` beside `private`: one slice, not two of the same memory.
        let mut part = second_is_refused((world, flags, 1), $array.private(), opens()).await?;
        part[0] = 1;
        assert_eq!(access(world.at(own).write(9).await), AccessError::Private { block: 1 });
        assert_eq!(part[0], 1);
        drop(part);

        // `private` beside `share`: the memory is shared.
        second_is_refused((world, flags, 2), $array.share(), opens()).await?;
        world.at(own).write(2).await?;
        world.barrier().await?;

        // `share` beside `private`: pointers are refused while the slice is there.
        let turn = (world, flags, 3);
        let part = second_is_refused(turn, $array.private(), $array.share()).await?;
        assert_eq!(part[0], 2);
        assert_eq!(access(world.at(own).write(9).await), AccessError::Private { block: 1 });
        assert_eq!(part[0], 2);
        drop(part);

        // `share` beside `share`, of which the second would wait for nobody.
        second_is_refused((world, flags, 4), $array.share(), $array.share()).await?;
        assert_eq!(world.at(own).read().await?, 2);
        world.barrier().await
    }};
}

#[test]
fn a_process_that_overlaps_private_and_share_of_a_spread_array_has_one_slice_or_pointers() {
    by_each(async |world| {
        let array = world.blocked::<u64>(4 * world.size()).await?;
        let own = array.pointer(4 * world.rank())?;
        overlap!(world, array, own)
    });
}

#[test]
fn a_process_that_overlaps_private_and_share_of_a_matrix_has_one_slice_or_pointers() {
    by_each(async |world| {
        let (rank, size) = (world.rank(), world.size());
        let matrix = world.matrix_on::<u64>(2 * size, 3, [size, 1]).await?;
        let own = matrix.pointer(2 * rank, 0)?;
        overlap!(world, matrix, own)
    });
}

#[test]
fn pointers_into_a_private_slice_lead_to_its_elements_and_back() {
    by_each(async |world| {
        let (rank, size) = (world.rank(), world.size());
        let next = (rank + 1) % size;
        for block in [1, 3] {
            // The last process has fewer elements than the others.
            let array = world.spread_blocks::<u64>(9 * size - 2, block).await?;
            let other = world.spread_blocks::<u64>(9 * size - 2, block).await?;
            let indices: Vec<_> = array.own_indices().collect();
            let mut part = array.private().await?;
            for (at, &index) in indices.iter().enumerate() {
                let pointer = array.pointer(index)?;
                assert_eq!(part.global(&part[at]), Some(pointer));
                *part.local_mut(pointer).expect("it is of this slice") = index as u64;
                assert_eq!(part.local(pointer), Some(&(index as u64)));
                assert_eq!(part[at], index as u64);
            }
            let first = array.pointer(indices[0])?;
            let beyond = [
                GlobalPtr::null(),
                first.on(next),
                first.on(size),
                first.local_add(-1),
                first.local_add(isize::MAX),
                first.local_add(part.len() as isize),
                other.pointer(indices[0])?,
                world.allocate(1)?,
            ];
            for pointer in beyond {
                assert_eq!(part.local(pointer), None, "{pointer}");
                assert_eq!(part.local_mut(pointer), None, "{pointer}");
            }
            assert_eq!(part.global(&7), None, "a number elsewhere is not of this slice");
            let other_part = other.private().await?;
            assert_eq!(part.global(&other_part[0]), None);
            drop(part);
            array.share().await?;
            for (at, &index) in indices.iter().enumerate() {
                assert_eq!(array.at(index).read().await?, index as u64, "{at}");
            }
        }
        Ok(())
    });
}

#[test]
fn only_whole_elements_of_a_private_slice_have_pointers() {
    by_each(async |world| {
        let size = world.size();
        let array = world.blocked::<[u8; 4]>(3 * size).await?;
        let part = array.private().await?;
        let bytes = part.as_bytes();
        for from in 0..=8 {
            let element = <[u8; 4]>::ref_from_bytes(&bytes[from..from + 4]).expect("four bytes");
            let pointer = part.global(element);
            assert_eq!(pointer.is_some(), from % 4 == 0, "from byte {from}");
        }
        let odd = array.pointer(3 * world.rank())?.cast::<u8>().expect("bytes are anywhere");
        let odd = odd.local_add(1).cast().expect("bytes are anywhere");
        assert_eq!(part.local(odd), None);
        let nothing = world.blocked::<[u64; 0]>(5 * size).await?;
        let none = nothing.private().await?;
        assert_eq!((none.len(), none.global(&none[0])), (5, None));
        assert_eq!(none.local(nothing.pointer(5 * world.rank())?), None);
        Ok(())
    });
}

#[test]
fn pointers_into_the_private_slice_of_a_matrix_lead_to_its_elements() {
    by_each(async |world| {
        let (rank, size) = (world.rank(), world.size());
        let matrix = world.matrix_on::<u32>(3, 2 * size, [1, size]).await?;
        let mut part = matrix.private().await?;
        for row in 0..3 {
            for column in 2 * rank..2 * rank + 2 {
                let pointer = matrix.pointer(row, column)?;
                *part.local_mut(pointer).expect("it is of this slice") = (row * column) as u32;
                let element = part.local(pointer).expect("it is of this slice");
                assert_eq!(part.global(element), Some(pointer));
            }
            let theirs = matrix.pointer(row, 2 * ((rank + 1) % size))?;
            assert_eq!(part.local(theirs), None);
        }
        drop(part);
        matrix.share().await?;
        assert_eq!(matrix.at(2, 2 * rank + 1).read().await?, 2 * (2 * rank as u32 + 1));
        world.barrier().await
    });
}
