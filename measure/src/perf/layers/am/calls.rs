//! Typed calls, of which many are in flight at a time, as those of RPC are.
//!
//! A call carries a body, as words if it fits those, and the answer says which body came. Calls
//! that wait for credits may overtake each other, so that no end relies on their order.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use anyhow::bail;
use bytes::Bytes;
use doorbell_am::{Call, Handlers, Peer};
use tokio::task::LocalSet;

use super::messages::{COUNTED, END, Said, fits_words, until_end};
use crate::perf::Plan;
use crate::perf::figures::Quantity;
use crate::perf::layers::callers;
use crate::perf::layers::following::Told;
use crate::perf::layers::verbs::Beat;
use crate::perf::shared::bodies::Bodies;
use crate::perf::shared::pattern::wholly;

/// A body of words, and the place of the body that came.
const fn words<A: Said>() -> Call<A, u64> {
    Call::new("body of words")
}

/// A body of bytes, and the place of the body that came.
const BYTES: Call<Bytes, u64> = Call::new("body of bytes");

/// The answer to a body that is not what it should be.
const WRONG: u64 = u64::MAX;

/// The handlers of the end that is called.
pub fn handlers<A: Said>(plan: &Plan, told: &Arc<Told>) -> Handlers {
    let (words_told, bytes_told) = (told.clone(), told.clone());
    let (bodies, size) = (Bodies::new(plan.size), plan.size);
    let handlers = Handlers::new()
        .on(words::<A>(), move |_, said| {
            let said = said.words();
            let place = Bodies::place_of_words(said).filter(|_| said.len() == size / 8);
            words_told.count(place.is_some());
            place.unwrap_or(WRONG)
        })
        .on(BYTES, move |_, bytes| {
            let number = bytes_told.count.load(Ordering::Relaxed);
            let place = bodies.place_of(&bytes, wholly(size, number));
            bytes_told.count(place.is_some());
            place.unwrap_or(WRONG)
        });
    until_end(handlers, told)
}

/// Makes calls with as many in flight as planned, and asks the other end whether all came as they
/// should.
pub async fn run<A: Said>(
    peer: &Peer,
    plan: &Plan,
    beat: &Beat,
) -> anyhow::Result<(u64, Quantity)> {
    let (calls, bodies, size) = (peer.clone(), Bodies::new(plan.size), plan.size);
    let call = async move |number| {
        let (place, answer) = if fits_words(size) {
            let place = Bodies::place(number);
            let said = A::of(size / 8, |index| Bodies::word(place, index));
            (place, calls.call(words::<A>(), said).await?)
        } else {
            let (place, body) = bodies.body(number);
            (place, calls.call(BYTES, body).await?)
        };
        if answer != place {
            bail!("the answer to call {number} is {answer}, and not {place}");
        }
        Ok(())
    };
    let (made, rate) = LocalSet::new().run_until(callers::run(plan, beat, call)).await?;
    let (count, wrong) = peer.call(END, ()).await?.arguments(COUNTED)?;
    if (count, wrong) != (made, 0) {
        bail!("of {made} calls {count} came, and {wrong} of them were wrong");
    }
    Ok((made, rate))
}
