//! Closing an endpoint in order: once peers have what was sent to them.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use doorbell_verbs::{CloseError, GivenUp, WhyGivenUp};
use tokio::time::timeout;

use super::shared::Shared;

/// Waits until peers have confirmed all that was sent, but no longer than the endpoint's patience;
/// closes the endpoint; and returns which peers have not. Of several tasks, the first does that,
/// and the others wait for its outcome.
pub async fn close(shared: &Shared) -> Result<(), CloseError> {
    let mut outcome = shared.closed.lock().await;
    if outcome.is_none() {
        *outcome = Some(confirmed(shared).await);
        shared.is_closing.store(true, Ordering::SeqCst);
    }
    // The driver stays a little, for a peer that asks for an acknowledgement again.
    let _ = timeout(CLOSES, until(shared, |shared| shared.lock().is_over)).await;
    outcome.clone().unwrap_or(Ok(()))
}

/// Waits until peers have confirmed all that was sent, but no longer than the endpoint's patience.
/// Returns which have not.
async fn confirmed(shared: &Shared) -> Result<(), CloseError> {
    let patience = {
        let mut state = shared.lock();
        state.losses.get_or_insert_default();
        state.settings.timing.patience
    };
    let in_time = timeout(patience, until(shared, |shared| shared.lock().is_confirmed())).await;
    let state = shared.lock();
    let late = state.unconfirmed();
    let mut losses: BTreeMap<String, WhyGivenUp> = state.losses.clone().unwrap_or_default();
    if in_time.is_err() {
        losses.extend(late.into_iter().map(|peer| (peer, WhyGivenUp::Late(patience))));
    }
    let given_up = losses.into_iter().map(|(peer, why)| GivenUp { peer, why });
    CloseError::unless_all_is_done(state.peers(), given_up.collect(), 0)
}

/// How long the driver may take to close the endpoint. If its runtime has ended, it never does.
const CLOSES: Duration = Duration::from_secs(1);

/// Waits until a condition holds, which is tried after each step of the driver.
async fn until(shared: &Shared, condition: impl Fn(&Shared) -> bool) {
    loop {
        let mut steps = pin!(shared.steps.notified());
        steps.as_mut().enable();
        if condition(shared) {
            return;
        }
        shared.stir();
        steps.await;
    }
}
