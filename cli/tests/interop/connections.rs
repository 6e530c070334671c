//! Connections by `rdma_cm`: `rping`, both ways, and those that end otherwise, or do not come
//! about.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use doorbell_core::wire::cm::RejectReason;
use doorbell_interop::{Faults, Output, Running};
use doorbell_verbs::{Buf, ConnectError, Ending, Name, Nic, QueuePairConfig};

use crate::game::{ask, serve, service};
use crate::pingpongs::{At, WORST};
use crate::session::{Asks, Outcome, PATIENCE, Session};
use crate::table::Table;

/// How many messages, and how long.
const COUNT: u32 = 50;
const SIZE: usize = 3000;

/// The longest time that a step may take.
const STEP: Duration = Duration::from_secs(20);

pub fn make(session: &Session, table: &mut Table) {
    let what = format!("`rping`, {COUNT} messages of {SIZE} bytes read and written back");
    table.row(what, |at| pings(session, at));
    table.row("the same with 1 % of each fault".to_owned(), |at| {
        session.under(WORST, 11, || pings(session, at))
    });
    table.row("private data of a request, an answer, and an end".to_owned(), |at| {
        private(session, at)
    });
    table.row("a refusal by the program, with its private data".to_owned(), |at| {
        refusal(session, at)
    });
    table.row("a port at which nobody listens: refused".to_owned(), |at| nobody(session, at));
    table.row("the end of the other, theirs killed, ours let go: told".to_owned(), |at| {
        killed(session, at)
    });
    let what = "a host that does not answer: given up".to_owned();
    // Theirs would ask for a minute.
    table.row_of(what, &[Asks::We], |at| silence(session, at));
}

/// Of this side, in which everything is run by whoever waits.
fn run<T>(future: impl Future<Output = anyhow::Result<T>>) -> Outcome<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let bounded = async { tokio::time::timeout(PATIENCE, future).await };
    match runtime.expect("a runtime").block_on(bounded) {
        Ok(done) => done.map_err(|why| format!("ours: {why:#}")),
        Err(_) => Err(format!("ours: not in {PATIENCE:?}")),
    }
}

/// Checks that no packet was refused, if nothing was harmed on the way.
fn unrefused(session: &Session, nic: &Nic) -> anyhow::Result<()> {
    let nic = nic.statistics().nic;
    let refused = nic.malformed + nic.strangers + nic.wrong_service + nic.wrong_state;
    anyhow::ensure!(session.harms() || refused == 0, "{refused} packets were refused: {nic:?}");
    Ok(())
}

/// Awaits a step of several.
async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> anyhow::Result<T> {
    let late = |_| anyhow::anyhow!("{what}: not in {STEP:?}");
    tokio::time::timeout(STEP, future).await.map_err(late)
}

fn open(session: &Session, (device, family, _): At) -> anyhow::Result<Nic> {
    Ok(Nic::builder().open_blocking(&session.spec(device, family))?)
}

fn start(session: &Session, command: &str) -> Outcome<Running> {
    session.guest.start(command).map_err(|why| why.to_string())
}

/// Waits for the end of a program in the guest, during which this side's NIC is run.
async fn end_of(running: Running) -> anyhow::Result<Output> {
    Ok(tokio::task::spawn_blocking(move || running.wait(PATIENCE)).await??)
}

/// An `rping` that waits in the guest.
fn server(session: &Session, (_, family, _): At, port: u16) -> Outcome<Running> {
    let address = session.theirs(family);
    let server = start(session, &format!("rping -s -a {address} -p {port} -S {SIZE} -C {COUNT}"))?;
    server.listens_to_managers(port, PATIENCE).map_err(|why| why.to_string())?;
    Ok(server)
}

/// Runs a client of the guest that connects to this host.
fn client(session: &Session, (device, family, _): At, port: u16) -> String {
    let address = session.ours(device, family);
    // Which checks what comes back.
    format!("rping -c -V -a {address} -p {port} -S {SIZE} -C {COUNT}")
}

/// Where the peer is, as this side's devices name it.
fn peer(session: &Session, (device, family, _): At) -> String {
    format!("{}:{}", device.name(), session.theirs(family))
}

fn pings(session: &Session, at: At) -> Outcome {
    let port = session.port();
    match at.2 {
        Asks::We => {
            let server = server(session, at, port)?;
            let to = peer(session, at);
            let texts = run(async {
                let nic = open(session, at)?;
                let texts = ask(&nic, &to, port, COUNT, SIZE).await?;
                unrefused(session, &nic)?;
                Ok(texts)
            });
            // It ends when its client has gone, and says that it has.
            let said = server.wait(PATIENCE).map_err(|why| why.to_string());
            let texts = texts.map_err(|why| format!("{why}\ntheirs: {said:?}"))?;
            match texts.len() == COUNT as usize {
                true => said.map(drop),
                false => Err(format!("{} of {COUNT} messages came back", texts.len())),
            }
        }
        Asks::They => {
            let client = client(session, at, port);
            let (count, output) = run(async {
                let nic = open(session, at)?;
                let listener = nic.listen(service(port)).await?;
                let client = start(session, &client).map_err(anyhow::Error::msg)?;
                let mut served = pin!(serve(&nic, listener, SIZE));
                let mut ended = pin!(end_of(client));
                // The NIC is there until both are: the client may have to be told again.
                tokio::select! {
                    count = &mut served => Ok((count?, ended.await?)),
                    output = &mut ended => {
                        let output = output?;
                        let what = format!("to hear of the end of {output}");
                        Ok((in_time(&what, served).await??, output))
                    }
                }
            })?;
            match count == COUNT && (output.succeeded() || lost_its_channel(&output)) {
                true => Ok(()),
                false => Err(format!("{count} of {COUNT} messages; theirs: {output}")),
            }
        }
    }
}

/// Whether `rping` has heard that the connection was ended in order, and then failed by itself: its
/// thread for events waits at a channel that its `main` closes, and the process exits by whichever is
/// first.
fn lost_its_channel(output: &Output) -> bool {
    let says = ["DISCONNECT EVENT", "rdma_get_cm_event: Bad file descriptor"];
    output.status == Some(255) && says.iter().all(|text| output.stderr.contains(text))
}

/// Starts a program in the guest that uses the kernel's connection manager and prints its events.
fn manager(session: &Session, part: &str, at: At, port: u16, data: &str) -> Outcome<Running> {
    let address = match at.2 {
        Asks::We => session.theirs(at.1),
        Asks::They => session.ours(at.0, at.1),
    };
    let script = include_str!("cm.py");
    let command = format!("python3 - {part} {address} {port} '{data}' <<'END'\n{script}\nEND");
    let running = start(session, &command)?;
    if at.2 == Asks::We {
        running.listens_to_managers(port, PATIENCE).map_err(|why| why.to_string())?;
    }
    Ok(running)
}

/// Checks that a connection manager in the guest has seen these events, and ended well.
fn saw(output: &Output, events: &[&str]) -> anyhow::Result<()> {
    let all = events.iter().all(|event| output.stdout.contains(event));
    anyhow::ensure!(output.succeeded() && all, "{events:?} were to be seen: {output}");
    Ok(())
}

const THEIRS: &str = "from the kernel";
const OURS: &str = "from Doorbell";

/// Private data that are sent while a connection is made arrive whole, followed by zeros.
fn private(session: &Session, at: At) -> Outcome {
    let port = session.port();
    let said = |data: &[u8]| data.starts_with(THEIRS.as_bytes()) && data[THEIRS.len()] == 0;
    match at.2 {
        Asks::We => {
            let peer_program = manager(session, "accept", at, port, THEIRS)?;
            run(async {
                let pair = open(session, at)?.domain().queue_pair(&QueuePairConfig::default())?;
                let to = peer(session, at);
                let (pair, answer) =
                    pair.connect(Name::at(&*to, service(port).0), OURS.as_bytes()).await?;
                anyhow::ensure!(said(&answer), "it answered {answer:?}");
                let ending = pair.connection().ended().await;
                anyhow::ensure!(matches!(ending, Ending::PeerLeft { .. }), "{ending:?}");
                // The answer to that is this side's to send.
                saw(
                    &end_of(peer_program).await?,
                    &[&format!("CONNECT_REQUEST 0 [{OURS}"), "ESTABLISHED 0"],
                )
            })
        }
        Asks::They => run(async {
            let nic = open(session, at)?;
            let mut listener = nic.listen(service(port)).await?;
            let program = manager(session, "ask", at, port, THEIRS).map_err(anyhow::Error::msg)?;
            let incoming = in_time("to be asked", listener.accept()).await??;
            anyhow::ensure!(said(incoming.private()), "it says {:?}", incoming.private());
            let pair = nic.domain().queue_pair(&QueuePairConfig::default())?;
            let (pair, _) = pair.accept(incoming, OURS.as_bytes()).await?;
            pair.connection().disconnect(b"enough").await?;
            let answered = format!("CONNECT_RESPONSE 0 [{OURS}] ");
            saw(&end_of(program).await?, &[&answered, "DISCONNECTED 0"])
        }),
    }
}

/// A program that does not want to says why.
fn refusal(session: &Session, at: At) -> Outcome {
    let port = session.port();
    match at.2 {
        Asks::We => {
            let program = manager(session, "refuse", at, port, THEIRS)?;
            run(async {
                let pair = open(session, at)?.domain().queue_pair(&QueuePairConfig::default())?;
                let asked = pair
                    .connect(Name::at(&*peer(session, at), service(port).0), OURS.as_bytes())
                    .await;
                let Err(ConnectError::Refused { reason, private, .. }) = asked.map(drop) else {
                    anyhow::bail!("it was not refused");
                };
                let why = (reason, private.starts_with(THEIRS.as_bytes()));
                anyhow::ensure!(why == (RejectReason::CONSUMER, true), "{reason}: {private:?}");
                saw(&end_of(program).await?, &[&format!("CONNECT_REQUEST 0 [{OURS}")])
            })
        }
        Asks::They => run(async {
            let nic = open(session, at)?;
            let mut listener = nic.listen(service(port)).await?;
            let program = manager(session, "ask", at, port, THEIRS).map_err(anyhow::Error::msg)?;
            in_time("to be asked", listener.accept()).await??.reject(OURS.as_bytes())?;
            // 28: the program, and not its manager.
            saw(&end_of(program).await?, &[&format!("REJECTED 28 [{OURS}] ")])
        }),
    }
}

fn nobody(session: &Session, at: At) -> Outcome {
    let port = session.port();
    match at.2 {
        Asks::We => run(async {
            let pair = open(session, at)?.domain().queue_pair(&QueuePairConfig::default())?;
            let asked = pair
                .connect(Name::at(&*peer(session, at), service(port).0), b"anybody there?")
                .await;
            match asked.map(drop) {
                Err(ConnectError::Refused { reason: RejectReason::INVALID_SERVICE_ID, .. }) => {
                    Ok(())
                }
                other => anyhow::bail!("it was not refused for that: {other:?}"),
            }
        }),
        Asks::They => {
            let client = client(session, at, port);
            let output = run(async {
                let nic = open(session, at)?;
                let client = start(session, &client).map_err(anyhow::Error::msg)?;
                // Nobody listens, and somebody has to say so.
                let output = end_of(client).await;
                drop(nic);
                output
            })?;
            let said = format!("{output}");
            match !output.succeeded() && said.contains("RDMA_CM_EVENT_REJECTED") {
                true => Ok(()),
                false => Err(format!("it was not refused: {said}")),
            }
        }
    }
}

/// An end that is left learns that the other has gone, whether that was killed or dropped
/// everything.
fn killed(session: &Session, at: At) -> Outcome {
    let port = session.port();
    match at.2 {
        Asks::We => {
            let server = server(session, at, port)?;
            run(async {
                let pair = open(session, at)?.domain().queue_pair(&QueuePairConfig::default())?;
                let (pair, _) =
                    pair.connect(Name::at(&*peer(session, at), service(port).0), &[]).await?;
                server.signal(Running::KILL);
                let received = pair.recv(Buf::with_capacity(16)).await;
                let why = received.err().ok_or_else(|| anyhow::anyhow!("something came"))?;
                match why.ending() {
                    Some(Ending::PeerLeft { .. }) => Ok(()),
                    other => anyhow::bail!("{why}, ended by {other:?}"),
                }
            })
        }
        Asks::They => {
            let client = client(session, at, port);
            let client = run(async {
                let nic = open(session, at)?;
                let mut listener = nic.listen(service(port)).await?;
                let client = start(session, &client).map_err(anyhow::Error::msg)?;
                let incoming = in_time("to be asked", listener.accept()).await??;
                let pair = nic.domain().queue_pair(&QueuePairConfig::default())?;
                let accepted =
                    in_time("to be connected", pair.accept(incoming, b"welcome")).await?;
                let (pair, _) = accepted?;
                // It does not expect an end before it has said something, and then does not always
                // end.
                in_time("to be told something", pair.recv(Buf::with_capacity(16))).await??;
                drop(pair);
                end_of(client).await
            })?;
            let said = client.to_string();
            match said.contains("DISCONNECT") {
                true => Ok(()),
                false => Err(format!("it did not hear: {said}")),
            }
        }
    }
}

fn silence(session: &Session, at: At) -> Outcome {
    session.link.faults(Faults { loss: 1.0, ..Faults::NONE }, 1);
    let outcome = run(async {
        let pair = open(session, at)?.domain().queue_pair(&QueuePairConfig::default())?;
        let to = peer(session, at);
        match in_time("to give it up", pair.connect(Name::at(&*to, service(7).0), &[])).await? {
            Err(ConnectError::TimedOut { .. }) => Ok(()),
            other => anyhow::bail!("{:?}", other.map(drop)),
        }
    });
    session.link.faults(Faults::NONE, 0);
    outcome
}
