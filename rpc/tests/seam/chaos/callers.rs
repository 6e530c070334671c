//! The callers, who call three servers through one balancer.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use doorbell_rpc::{Body, Channel, Client, Code, Request, Response, Status};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tower::ServiceBuilder;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PendingRequests};
use tower::retry::Policy;
use tower::util::BoxCloneSyncService;

use crate::chaos::server::{AGAIN, ONCE};

/// The number of callers.
const CALLERS: u64 = 64;

/// The pause of a caller between two calls.
const PAUSE: Duration = Duration::from_millis(1);

/// How often a call is tried at most.
const TRIES: usize = 100;

/// How a call has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It was answered with its number.
    Answered,
    /// It has failed, and has certainly not run.
    NotRun(Code),
    /// It has failed, and may have run.
    Failed(Code),
    /// It had not ended long after its deadline.
    Hung,
}

/// A call that was made, by its number.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub call: u64,
    pub end: End,
}

impl Made {
    /// Whether calls with a number may run several times.
    pub fn may_repeat(call: u64) -> bool {
        call.is_multiple_of(2)
    }
}

/// Tries a call again that may run again, or that has not run.
#[derive(Clone)]
struct Tries(usize);

impl Policy<Request<Body>, Response<Body>, Status> for Tries {
    type Future = futures_util::future::Either<Ready<()>, tokio::time::Sleep>;

    fn retry(
        &mut self,
        request: &mut Request<Body>,
        answer: &mut Result<Response<Body>, Status>,
    ) -> Option<Self::Future> {
        let status = answer.as_ref().err()?;
        let may_repeat = status.has_not_run() || request.method().is_idempotent();
        let is_worth_it = status.code() == Code::Unavailable && self.0 > 0;
        self.0 -= usize::from(is_worth_it);
        let pause = tokio::time::sleep(Duration::from_millis(5));
        (is_worth_it && may_repeat).then(|| match self.0 + 1 == TRIES {
            true => futures_util::future::Either::Left(ready(())),
            false => futures_util::future::Either::Right(pause),
        })
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        request.try_clone()
    }
}

type Balanced = Client<BoxCloneSyncService<Request<Body>, Response<Body>, Status>>;

/// A client of all servers, each call of which goes to the one with fewer calls of two.
async fn balanced(names: &[String]) -> Balanced {
    let mut channels = Vec::new();
    for name in names {
        let channel =
            Channel::builder().keep_alive(Duration::from_millis(500)).connect(name.as_str());
        channels.push(channel.await.expect("the server is there"));
    }
    let loaded = channels
        .into_iter()
        .map(|channel| PendingRequests::new(channel, CompleteOnResponse::default()));
    let balance = Balance::new(ServiceList::new(loaded));
    let layers = ServiceBuilder::new().retry(Tries(TRIES)).map_err(Status::from_error);
    Client::new(BoxCloneSyncService::new(layers.service(Buffer::new(balance, 1024))))
}

/// Callers that make one call after the other.
pub struct Callers {
    runtime: Runtime,
    tasks: Vec<JoinHandle<Vec<Made>>>,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
}

impl Callers {
    /// Starts callers whose calls have deadlines of a time.
    pub fn start(names: &[String], deadline: Duration) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads can be started");
        let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = runtime.block_on(balanced(names));
        let tasks = (0..CALLERS)
            .map(|number| {
                let caller = Caller {
                    client: client.clone(),
                    deadline,
                    stop: stop.clone(),
                    answered: answered.clone(),
                };
                runtime.spawn(caller.calls(number << 32))
            })
            .collect();
        Self { runtime, tasks, stop, answered }
    }

    /// Waits until so many more calls were answered.
    pub fn more(&self, calls: u64) {
        let enough = self.answered.load(Ordering::SeqCst) + calls;
        while self.answered.load(Ordering::SeqCst) < enough {
            assert!(self.tasks.iter().all(|task| !task.is_finished()), "a caller has ended");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Has each caller make calls until one more is answered, and returns all calls.
    pub fn stop(self) -> Vec<Made> {
        self.stop.store(true, Ordering::SeqCst);
        let all = self.runtime.block_on(futures_util::future::join_all(self.tasks));
        all.into_iter().flat_map(|made| made.expect("no caller panics")).collect()
    }
}

struct Caller {
    client: Balanced,
    deadline: Duration,
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
}

impl Caller {
    /// Makes calls with numbers from `first` on. The last one is answered, when all servers are
    /// there again.
    async fn calls(self, first: u64) -> Vec<Made> {
        let mut all = Vec::new();
        for call in first.. {
            let is_last = self.stop.load(Ordering::SeqCst);
            let end = self.call(call).await;
            all.push(Made { call, end });
            match end {
                End::Answered if is_last => break,
                End::Answered => _ = self.answered.fetch_add(1, Ordering::SeqCst),
                End::Hung => break,
                _ => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
        all
    }

    async fn call(&self, call: u64) -> End {
        let method = if Made::may_repeat(call) { AGAIN } else { ONCE };
        let mut request = Request::new(call);
        request.set_timeout(self.deadline);
        let answer = self.client.unary(method, request);
        match tokio::time::timeout(2 * self.deadline, answer).await {
            Err(_) => End::Hung,
            Ok(Ok(answer)) => {
                assert_eq!(answer.into_inner(), call);
                End::Answered
            }
            Ok(Err(status)) if status.has_not_run() => End::NotRun(status.code()),
            Ok(Err(status)) => End::Failed(status.code()),
        }
    }
}
