//! Asynchronous handlers: tasks, so many at a time.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;

use crate::buffers::locked;
use crate::handlers::Task;
use crate::links::Core;

pub(crate) struct Tasks {
    runtime: Handle,
    most: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those that wait until another is done: no more than requests may come.
    waiting: VecDeque<Task>,
}

impl Tasks {
    pub fn new(runtime: Handle, most: usize) -> Self {
        Self { runtime, most, state: Mutex::default() }
    }

    /// Starts a task, now or when there is room.
    pub fn spawn(&self, task: Task, endpoint: &Arc<Core>) {
        let mut state = locked(&self.state);
        if state.running == self.most {
            state.waiting.push_back(task);
            return;
        }
        state.running += 1;
        drop(state);
        self.start(task, endpoint.clone());
    }

    fn start(&self, task: Task, endpoint: Arc<Core>) {
        let running = Running(endpoint);
        self.runtime.spawn(async move {
            let _running = running;
            task.await;
        });
    }
}

/// A task that runs. When it is over, however that came, another may begin.
struct Running(Arc<Core>);

impl Drop for Running {
    fn drop(&mut self) {
        let Core { tasks, shared, .. } = &*self.0;
        if std::thread::panicking() {
            shared.counters.panics.fetch_add(1, Ordering::Relaxed);
        }
        let mut state = locked(&tasks.state);
        let next = state.waiting.pop_front();
        state.running -= usize::from(next.is_none());
        drop(state);
        if let Some(task) = next {
            tasks.start(task, self.0.clone());
        }
    }
}
