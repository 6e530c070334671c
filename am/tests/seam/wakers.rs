//! Wakers that poll their tasks at once, as some executors' do, and wakers that panic.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::ThreadId;
use std::time::Duration;

use doorbell_am::{CallError, Endpoint, EndpointConfig, Handlers, Kept, Peer, RequestId, Tag};
use doorbell_kit::PATIENCE;

use crate::common::{ADD, ALL, Over, SUM, bundle, endpoint_with, everywhere};

const NOTE: RequestId<()> = RequestId::new(1, "note");
const KEEP: RequestId<u64> = RequestId::new(2, "keep");

/// Runs a program that may lock up its threads, for which a time-out in its runtime does not end.
#[track_caller]
fn without_locking_up<F>(program: fn(Over) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    ends(move || everywhere(program));
}

#[track_caller]
fn ends(program: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel();
    std::thread::spawn(move || {
        program();
        let _ = done.send(());
    });
    is_done.recv_timeout(4 * PATIENCE).expect("the program ends, without a panic");
}

/// Two endpoints, of which one has mapped the other with so many credits.
async fn mapped(over: Over, credits: usize, far: Handlers) -> (Endpoint, Peer, Endpoint) {
    let config = || EndpointConfig { credits, first_credits: credits, ..EndpointConfig::default() };
    let near = endpoint_with(over, Handlers::new(), config()).await;
    let far = endpoint_with(over, far, config()).await;
    let peer = near.map(0, far.name(), Tag(1)).await.expect("it is there");
    (near, peer, far)
}

fn adding() -> Handlers {
    Handlers::new().request(ADD, |request, (a, b)| request.reply(SUM, a + b))
}

async fn sum(peer: &Peer, number: u64) -> u64 {
    let told = peer.call(ADD, (number, 1)).await.expect("it is answered");
    told.arguments(SUM).expect("a sum")
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A task that is polled by its waker, unless it is being polled just now. Another thread than the
/// task's own leaves that to the task's own.
struct AtOnce {
    task: Mutex<Option<Task>>,
    home: ThreadId,
    woken: AtomicBool,
    done: AtomicBool,
}

impl AtOnce {
    fn start(task: impl Future<Output = ()> + Send + 'static) -> Arc<Self> {
        let task = Mutex::new(Some(Box::pin(task) as Task));
        let home = std::thread::current().id();
        let this = Arc::new(Self { task, home, woken: true.into(), done: false.into() });
        this.run();
        this
    }
}

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if std::thread::current().id() == self.home {
            self.run();
        }
    }
}

impl AtOnce {
    fn run_until_asleep(self: &Arc<Self>) {
        while self.woken.load(Ordering::SeqCst) {
            self.run();
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Polls the task once if it was woken.
    fn run(self: &Arc<Self>) {
        let waker = Waker::from(self.clone());
        let take = || self.task.lock().expect("no panic").take();
        let Some(mut task) = self.woken.load(Ordering::SeqCst).then(take).flatten() else {
            return;
        };
        self.woken.store(false, Ordering::SeqCst);
        match task.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(()) => self.done.store(true, Ordering::SeqCst),
            Poll::Pending => *self.task.lock().expect("no panic") = Some(task),
        }
    }
}

/// Regression test for a bug: tasks were woken under the lock of their link, and while the NIC was
/// held. A task that was polled by its waker waited for that lock for ever, or panicked.
#[test]
fn tasks_that_are_polled_by_their_wakers_get_credits_and_answers() {
    let program = |over| async move {
        let kept: Arc<Mutex<Vec<Kept>>> = Arc::default();
        let keeps = kept.clone();
        let far = adding().request(KEEP, move |request, _| {
            keeps.lock().expect("no panic").push(request.keep());
        });
        let (near, peer, _far) = mapped(over, 1, far).await;
        for _ in 0..20 {
            let credit = peer.credit().await.expect("it is there");
            let its = peer.clone();
            let task = AtOnce::start(async move {
                let told = its.call(KEEP, 0).await.expect("it is answered");
                assert_eq!(told.arguments(SUM), Ok(7));
            });
            task.run_until_asleep();
            drop(credit);
            task.run_until_asleep();
            let held = loop {
                if let Some(held) = kept.lock().expect("no panic").pop() {
                    break held;
                }
            };
            held.reply(SUM, 7);
            while !task.done.load(Ordering::SeqCst) {
                near.bundle().poll(true);
                task.run();
            }
        }
    };
    // Outside of Tokio, whose list of tasks that yield is locked while they are woken.
    ends(move || ALL.into_iter().for_each(|over| bundle(over).block_on(program(over))));
}

/// A waker that panics once it is told to.
#[derive(Default)]
struct Panics {
    woken: AtomicBool,
    panics: AtomicBool,
    panicked: AtomicBool,
}

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if self.panics.load(Ordering::SeqCst) {
            self.panicked.store(true, Ordering::SeqCst);
            panic!("as it should");
        }
    }
}

impl Panics {
    /// Polls a future until its task sleeps. From then on the task's waker panics.
    async fn sleeping<F: Future>(mut future: Pin<&mut F>) -> Arc<Self> {
        let this = Arc::new(Self::default());
        let waker = Waker::from(this.clone());
        loop {
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending(), "nothing has come");
            tokio::time::sleep(Duration::from_millis(20)).await;
            if !this.woken.swap(false, Ordering::SeqCst) {
                this.panics.store(true, Ordering::SeqCst);
                return this;
            }
        }
    }

    async fn have_panicked(all: &[Arc<Self>]) {
        while !all.iter().all(|each| each.panicked.load(Ordering::SeqCst)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Regression test for a bug: the panic of a waker ended the task that served the bundle, and the
/// tasks behind were not woken.
#[test]
fn tasks_that_wait_for_a_handlers_doing_are_woken_behind_a_waker_that_panics() {
    without_locking_up(|over| async move {
        let (noted, counts) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let count = counts.clone();
        let far = adding().request(NOTE, move |request, ()| {
            count.fetch_add(1, Ordering::SeqCst);
            drop(request);
        });
        let (_near, peer, far) = mapped(over, 8, far).await;
        let bundle = far.bundle();
        let mut never = pin!(bundle.wait_until(|| None::<()>));
        let panics = Panics::sleeping(never.as_mut()).await;
        let waiting = [(); 3].map(|()| {
            let (bundle, counts, noted) = (far.bundle().clone(), counts.clone(), noted.clone());
            tokio::spawn(async move {
                bundle.wait_until(|| (counts.load(Ordering::SeqCst) > 0).then_some(())).await;
                noted.fetch_add(1, Ordering::SeqCst);
            })
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        peer.request(NOTE, ()).await.expect("there are credits");
        Panics::have_panicked(&[panics]).await;
        for waits in waiting {
            waits.await.expect("the wait does not panic");
        }
        assert_eq!(noted.load(Ordering::SeqCst), 3);
        for number in 0..20 {
            assert_eq!(sum(&peer, number).await, number + 1, "the bundle is served");
        }
    });
}

/// Regression test for a bug: the wakers behind one that panicked were dropped, so that of the
/// tasks which waited for a credit only those in front heard that the peer had gone.
#[test]
fn all_tasks_that_wait_for_credits_and_answers_hear_of_the_end_behind_wakers_that_panic() {
    without_locking_up(|over| async move {
        let kept: Arc<Mutex<Vec<Kept>>> = Arc::default();
        let keeps = kept.clone();
        let far = adding().request(KEEP, move |request, _| {
            keeps.lock().expect("no panic").push(request.keep());
        });
        let (_near, peer, far) = mapped(over, 2, far).await;
        let keep = |number| {
            let peer = peer.clone();
            tokio::spawn(async move { peer.call(KEEP, number).await })
        };
        let mut call = pin!(peer.call(KEEP, 0));
        let first = Panics::sleeping(call.as_mut()).await;
        let answered = keep(1);
        while kept.lock().expect("no panic").len() < 2 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut credit = pin!(peer.credit());
        let second = Panics::sleeping(credit.as_mut()).await;
        let others = [(); 3].map(|()| keep(2));
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop((far, kept));
        Panics::have_panicked(&[first, second]).await;
        for other in others {
            let told = other.await.expect("the call does not panic");
            assert!(told.is_err(), "{told:?}");
        }
        let told = answered.await.expect("the call does not panic");
        assert!(matches!(told, Err(CallError::PeerGone { .. })), "{told:?}");
    });
}

/// Regression test for a bug: an answer whose waiting task had a waker that panics ended the task
/// that served the bundle.
#[test]
fn answers_come_behind_an_answer_whose_waker_panics() {
    without_locking_up(|over| async move {
        let kept: Arc<Mutex<Vec<Kept>>> = Arc::default();
        let keeps = kept.clone();
        let far = adding().request(KEEP, move |request, _| {
            keeps.lock().expect("no panic").push(request.keep());
        });
        let (_near, peer, _far) = mapped(over, 1, far).await;
        let mut call = pin!(peer.call(KEEP, 0));
        let answer = Panics::sleeping(call.as_mut()).await;
        let mut credit = pin!(peer.call(ADD, (1, 1)));
        let credits = Panics::sleeping(credit.as_mut()).await;
        let held = kept.lock().expect("no panic").pop().expect("it came");
        held.reply(SUM, 7);
        Panics::have_panicked(&[answer, credits]).await;
        assert_eq!(call.await.expect("it is answered").arguments(SUM), Ok(7));
        assert_eq!(credit.await.expect("it is answered").arguments(SUM), Ok(2));
        for number in 0..20 {
            assert_eq!(sum(&peer, number).await, number + 1, "the bundle is served");
        }
    });
}
