//! Servers that come and go: lists, files, look-ups and functions that say which there are.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use doorbell_am::Name;
use doorbell_rpc::{
    Body, Client, Code, Method, Request, Response, Router, Server, Servers, ServersBuilder,
};
use futures_util::{FutureExt, StreamExt};
use tokio::sync::Notify;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::Change;
use tower::load::{CompleteOnResponse, PendingRequestsDiscover};

/// Answers with the name that the server was given.
const WHO: Method<(), String> = Method::new("who").idempotent();
/// As [`WHO`], when the test lets it go.
const HOLD: Method<(), String> = Method::new("hold");

/// The longest that anything here may take.
const LONG: Duration = Duration::from_secs(30);

async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LONG, future).await.expect("it ends")
}

/// A server that is called `who`, whose held calls begin and go on when they are told.
async fn open_at(device: &str, who: &'static str, begun: &Arc<Notify>, go: &Arc<Notify>) -> Server {
    let (begun, go) = (begun.clone(), go.clone());
    let router = Router::new().unary(WHO, move |_| async move { Ok(who.to_owned()) }).unary(
        HOLD,
        move |_| {
            let (begun, go) = (begun.clone(), go.clone());
            async move {
                begun.notify_one();
                go.notified().await;
                Ok(who.to_owned())
            }
        },
    );
    let server = Server::builder().add_service(router).service(7).open(device).await;
    server.expect("nobody has the address")
}

async fn open(who: &'static str) -> Server {
    open_at("shm", who, &Arc::default(), &Arc::default()).await
}

/// The next change among the servers: the name of one that has come, or gone.
async fn next(servers: &mut Servers) -> (&'static str, Name) {
    match in_time(servers.next()).await.expect("it goes on").expect("it never fails") {
        Change::Insert(name, service) => {
            assert_eq!(service.channel().name(), &name);
            ("come", name)
        }
        Change::Remove(name) => ("gone", name),
    }
}

fn soon(servers: ServersBuilder) -> Servers {
    servers.every(Duration::from_millis(5)).watch().expect("there is a runtime")
}

/// A client of whichever servers there are.
fn balanced(
    servers: Servers,
) -> Client<
    impl tower::Service<Request<Body>, Response = Response<Body>, Error = tower::BoxError, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static,
> {
    let servers = PendingRequestsDiscover::new(servers, CompleteOnResponse::default());
    Client::new(Buffer::new(Balance::new(servers), 64))
}

/// A file for one test, which is removed when this is dropped.
struct Names(PathBuf);

impl Names {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let file = format!("doorbell-discovery-{process}-{number}");
        Self(std::env::temp_dir().join(file))
    }

    /// Replaces the file by another, at once.
    fn says(&self, text: &str) {
        let next = self.0.with_extension("next");
        fs::write(&next, text).expect("there is room");
        fs::rename(&next, &self.0).expect("it may be replaced");
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_list_has_its_servers_once_each() {
    let names = [Name::at("shm:discovery/a", 7), Name::at("shm:discovery/b", 7)];
    let listed = names.iter().chain(&names).cloned();
    let mut servers = Servers::list(listed).watch().expect("there is a runtime");
    let mut come = [next(&mut servers).await, next(&mut servers).await];
    come.sort();
    assert_eq!(come, names.map(|name| ("come", name)));
    assert!(servers.next().now_or_never().is_none(), "there are two");
}

#[tokio::test]
async fn servers_come_and_go_as_a_file_says() {
    let names = Names::new();
    let [one, other] = [7, 8].map(|number| Name::at("shm:discovery/file", number));
    names.says(&format!("# all of them\n{one}\n"));
    let mut servers = soon(Servers::file(&names.0));
    assert_eq!(next(&mut servers).await, ("come", one.clone()));
    names.says(&format!("{one} # stays\n\n{other}\n"));
    assert_eq!(next(&mut servers).await, ("come", other.clone()));
    names.says(&format!("{other}\n"));
    assert_eq!(next(&mut servers).await, ("gone", one));
}

#[tokio::test]
async fn a_file_that_is_broken_or_empty_or_gone_leaves_the_servers_that_are_known() {
    let names = Names::new();
    let [one, other] = [7, 8].map(|number| Name::at("shm:discovery/broken", number));
    names.says(&format!("{one}\n"));
    let mut servers = soon(Servers::file(&names.0));
    assert_eq!(next(&mut servers).await, ("come", one.clone()));
    for broken in [format!("{other}\nno name\n"), String::new(), "# nobody\n".to_owned()] {
        names.says(&broken);
        // Several looks, none of which finds anything.
        let change = tokio::time::timeout(Duration::from_millis(50), servers.next()).await;
        assert!(change.is_err(), "{broken:?}: {change:?}");
    }
    fs::remove_file(&names.0).expect("it is there");
    let change = tokio::time::timeout(Duration::from_millis(50), servers.next()).await;
    assert!(change.is_err(), "{change:?}");
    names.says(&format!("{other}\n"));
    assert_eq!(next(&mut servers).await, ("come", other));
    assert_eq!(next(&mut servers).await, ("gone", one));
}

#[tokio::test]
async fn a_program_that_finds_no_servers_at_first_is_told_why() {
    let names = Names::new();
    let missing = in_time(Servers::file(&names.0).find()).await.expect_err("there is no file");
    assert_eq!(missing.code(), Code::Unavailable);
    let text = missing.message();
    let path = names.0.display().to_string();
    assert!(text.starts_with("no servers found: ") && text.contains(&path), "{text}");
    let nobody = in_time(Servers::list([]).find()).await.expect_err("it lists nobody");
    assert_eq!(nobody.message(), "no servers found: the list of them is empty");
    let [one, other] = [7, 8].map(|number| Name::at("shm:discovery/find", number));
    names.says(&format!("{one}\n"));
    let found = Servers::file(&names.0).every(Duration::from_millis(5)).find();
    let mut servers = in_time(found).await.expect("it is listed");
    assert_eq!(next(&mut servers).await, ("come", one));
    names.says(&format!("{other}\n"));
    assert_eq!(next(&mut servers).await.1, other);
}

#[tokio::test]
async fn servers_come_and_go_with_the_addresses_of_a_host() {
    let [one, other]: [SocketAddr; 2] =
        ["192.0.2.1:5000", "[2001:db8::1]:5000"].map(|at| at.parse().expect("an address"));
    let answers = Arc::new(Mutex::new(Ok(vec![one, other])));
    let asked = answers.clone();
    let mut servers = soon(Servers::resolved(7, move || {
        let answer = match &*asked.lock().expect("nobody panics") {
            Ok(addresses) => Ok::<Vec<_>, std::io::Error>(Vec::clone(addresses)),
            Err(()) => Err(std::io::ErrorKind::TimedOut.into()),
        };
        async { answer }
    }));
    let mut come = [next(&mut servers).await, next(&mut servers).await];
    come.sort();
    let [first, second] = [one, other].map(|at| Name::at(format!("udp:{at}"), 7));
    let mut expected = [("come", first), ("come", second.clone())];
    expected.sort();
    assert_eq!(come, expected);
    for nothing in [Err(()), Ok(vec![])] {
        *answers.lock().expect("nobody panics") = nothing;
        let change = tokio::time::timeout(Duration::from_millis(50), servers.next()).await;
        assert!(change.is_err(), "{change:?}");
    }
    *answers.lock().expect("nobody panics") = Ok(vec![one]);
    assert_eq!(next(&mut servers).await, ("gone", second));
}

#[tokio::test]
async fn the_addresses_of_a_host_are_those_that_the_system_finds() {
    let mut servers = Servers::dns("127.0.0.1:5000", 42).watch().expect("there is a runtime");
    assert_eq!(next(&mut servers).await, ("come", Name::at("udp:127.0.0.1:5000", 42)));
}

// The guide's own program did this before.
#[tokio::test(flavor = "multi_thread")]
async fn calls_follow_the_servers_that_a_function_finds_and_those_under_way_end_in_order() {
    let (begun, go) = (Arc::<Notify>::default(), Arc::<Notify>::default());
    let one = open_at("shm", "one", &begun, &go).await;
    let other = open("other").await;
    let present = Arc::new(Mutex::new(vec![one.name().clone()]));
    let looked = present.clone();
    let client = balanced(soon(Servers::from_fn(move || {
        let names = looked.lock().expect("nobody panics").clone();
        async { Ok::<_, std::io::Error>(names) }
    })));
    assert_eq!(in_time(client.unary(WHO, ())).await.expect("an answer").into_inner(), "one");
    let held = tokio::spawn(client.unary(HOLD, ()));
    in_time(begun.notified()).await;
    *present.lock().expect("nobody panics") = vec![other.name().clone()];
    in_time(async {
        while client.unary(WHO, ()).await.expect("an answer").into_inner() != "other" {}
    })
    .await;
    go.notify_one();
    let held = in_time(held).await.expect("no panic").expect("it goes on");
    assert_eq!(held.into_inner(), "one");
    for _ in 0..20 {
        assert_eq!(client.unary(WHO, ()).await.expect("an answer").into_inner(), "other");
    }
}

#[tokio::test]
async fn a_call_that_waits_for_any_server_ends_when_its_time_is_over() {
    let client = balanced(Servers::list([]).watch().expect("there is a runtime"));
    let mut request = Request::new(());
    request.set_timeout(Duration::from_millis(50));
    let status = in_time(client.unary(WHO, request)).await.expect_err("there is no server");
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
}

#[test]
fn servers_are_not_watched_outside_of_a_runtime() {
    let refused = Servers::list([]).watch().expect_err("there is no runtime");
    assert!(refused.message().contains("there is no Tokio runtime here"), "{refused}");
}
