//! Collectives of a program that look like the library's own agreements.

use doorbell_splitc::{Config, Error};

use crate::common::{config, outcome};

/// The least and the greatest of each number: what an agreement of the library computes.
fn extremes<const N: usize>(
    [least, greatest]: [[u64; N]; 2],
    [low, high]: [[u64; N]; 2],
) -> [[u64; N]; 2] {
    [
        std::array::from_fn(|at| least[at].min(low[at])),
        std::array::from_fn(|at| greatest[at].max(high[at])),
    ]
}

#[test]
fn a_process_gets_no_slice_by_a_collective_that_another_process_has_made_up() {
    // The agreement was an `all_reduce` of two rows of numbers, which any program could call. So
    // one process had its slice, and the other went on to write there.
    for step in 0..3 {
        let config = Config { heap: 1 << 20, ..config() };
        let ended = outcome(2, "shm", config, async move |world| {
            let array = world.spread::<u64>(2).await?;
            if world.rank() == 0 {
                let part = array.private().await;
                assert!(part.is_err(), "step {step}: a slice that nobody agreed to");
                return Ok(());
            }
            let forged: [u64; 2] = [1, step];
            let agreed: Result<_, Error> = world.all_reduce([forged; 2], extremes).await;
            assert!(agreed.is_err(), "step {step}: {agreed:?}");
            Ok(())
        });
        let why = ended.expect_err("the processes have called different collectives").to_string();
        assert!(why.contains("all-reduce") && why.contains("agreement"), "{why}");
    }
}
