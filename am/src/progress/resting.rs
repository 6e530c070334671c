//! Endpoints of a bundle whose receives rest while the endpoints are idle.
//!
//! One task sees to that for all endpoints of the bundle, and only as long as the receives of some
//! do not rest.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use doorbell_verbs::floor::locked;
use tokio::runtime::Handle;

use crate::link::Owner;

/// The time after which an endpoint is idle if nothing has come or gone.
const IDLE: Duration = Duration::from_secs(1);

/// The endpoints of a bundle whose receives are to rest once the endpoints are idle.
#[derive(Default)]
pub(super) struct Resting(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    awake: Vec<Weak<dyn Owner>>,
    /// Whether the task runs that has them rest.
    is_served: bool,
}

impl Resting {
    /// Has the receives of an endpoint rest once the endpoint is idle, by a task of a runtime.
    pub fn when_idle(&self, owner: Weak<dyn Owner>, runtime: &Handle) {
        let mut state = locked(&self.0);
        state.awake.push(owner);
        if !std::mem::replace(&mut state.is_served, true) {
            runtime.spawn(rest_idle(Arc::downgrade(&self.0)));
        }
    }
}

/// Has the receives of idle endpoints rest, until those of all do, or the bundle is gone.
async fn rest_idle(state: Weak<Mutex<State>>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(state) = state.upgrade() else { return };
        let mut awake = std::mem::take(&mut locked(&state).awake);
        awake.retain(|owner| owner.upgrade().is_some_and(|owner| !owner.rests()));
        let mut state = locked(&state);
        state.awake.append(&mut awake);
        if state.awake.is_empty() {
            *state = State::default();
            return;
        }
    }
}
