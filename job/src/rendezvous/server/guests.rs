//! Connections that have not proved yet that they belong to the job.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bounded number of connections that have not proved anything. Whoever comes when there are too
/// many takes the place of the oldest connection of the host that has most, so that neither one
/// host nor connections that never say anything keep the processes of the job from coming.
#[derive(Debug)]
pub struct Guests {
    most: usize,
    all: Mutex<BTreeMap<u64, (IpAddr, TcpStream)>>,
}

impl Guests {
    pub fn new(most: usize) -> Self {
        Self { most, all: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, (IpAddr, TcpStream)>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a connection under a number that grows from one to the next, and ends another one if
    /// there are too many.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn enter(&self, number: u64, stream: &TcpStream, from: SocketAddr) -> io::Result<()> {
        let stream = stream.try_clone()?;
        let mut all = self.lock();
        all.insert(number, (from.ip(), stream));
        if all.len() > self.most
            && let Some((ip, stream)) = oldest_of_most(&all).and_then(|oldest| all.remove(&oldest))
        {
            tracing::debug!(%ip, "a connection that has proved nothing makes room for another");
            let _ = stream.shutdown(Shutdown::Both);
        }
        Ok(())
    }

    /// Removes a connection, which has proved that it belongs to the job, or has ended.
    pub fn leave(&self, number: u64) {
        self.lock().remove(&number);
    }
}

fn oldest_of_most(all: &BTreeMap<u64, (IpAddr, TcpStream)>) -> Option<u64> {
    let mut hosts: BTreeMap<IpAddr, (usize, u64)> = BTreeMap::new();
    for (&number, &(ip, _)) in all {
        hosts.entry(ip).or_insert((0, number)).0 += 1;
    }
    hosts.into_values().max_by_key(|&(count, _)| count).map(|(_, oldest)| oldest)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_oldest_connection_of_the_host_with_most_makes_room() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let guests = Guests::new(3);
        let mut clients = Vec::new();
        for (number, host) in [(0, 1), (1, 2), (2, 2), (3, 2)] {
            let client = TcpStream::connect(listener.local_addr().expect("it is bound"));
            let (stream, _) = listener.accept().expect("a client is there");
            let from = SocketAddr::from(([192, 0, 2, host], 1));
            guests.enter(number, &stream, from).expect("descriptors are left");
            clients.push((client.expect("somebody listens"), stream));
        }
        let kept: Vec<_> = guests.lock().keys().copied().collect();
        assert_eq!(kept, [0, 2, 3]);
        let (mut client, _) = clients.swap_remove(1);
        assert_eq!(client.read(&mut [0]).expect("it is no error"), 0, "the connection has ended");
    }
}
