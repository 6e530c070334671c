//! All floors open alike: on a device, or on a NIC that is open; each has a name that others
//! connect to, and is closed.

use doorbell::verbs::{Name, Nic, ServiceId};
use doorbell::{am, bytestream, messages, rpc};
use messages::{frames, streams};

type Done<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What the endpoints of all floors have in common.
trait Floor: Sized {
    async fn open(device: &str) -> Done<Self>;
    async fn on(nic: &Nic) -> Done<Self>;
    fn name(&self) -> Name;
    async fn connect(&self, name: Name) -> Done<()>;
    async fn close(self) -> Done<()>;
}

/// Two endpoints, of which one has a NIC to itself and the other is on one that is open, connect to
/// each other and are closed.
async fn meets<F: Floor>() -> Done<()> {
    let nic = Nic::open("shm").await?;
    let (own, shared) = (F::open("shm").await?, F::on(&nic).await?);
    assert_ne!(own.name(), shared.name());
    assert_eq!(shared.name().address(), nic.address().to_string());
    // As text, as a name goes from one process to another.
    let name: Name = shared.name().to_string().parse()?;
    own.connect(name).await?;
    own.close().await?;
    shared.close().await
}

struct Verbs(Nic, doorbell::verbs::Listener);

impl Floor for Verbs {
    async fn open(device: &str) -> Done<Self> {
        Self::on(&Nic::open(device).await?).await
    }
    async fn on(nic: &Nic) -> Done<Self> {
        Ok(Self(nic.clone(), nic.listen(ServiceId(7)).await?))
    }
    fn name(&self) -> Name {
        self.1.name()
    }
    async fn connect(&self, name: Name) -> Done<()> {
        // Nobody accepts here, so that the attempt is given up: that it begins is enough.
        drop(self.0.connect(name));
        Ok(())
    }
    async fn close(self) -> Done<()> {
        self.0.close().await;
        Ok(())
    }
}

impl Floor for am::Endpoint {
    async fn open(device: &str) -> Done<Self> {
        Ok(Self::open(device, am::Handlers::new()).await?)
    }
    async fn on(nic: &Nic) -> Done<Self> {
        Ok(Self::on(nic, am::Handlers::new()).await?)
    }
    fn name(&self) -> Name {
        self.name().clone()
    }
    async fn connect(&self, name: Name) -> Done<()> {
        Ok(self.connect(name).await.map(drop)?)
    }
    async fn close(self) -> Done<()> {
        Ok(am::Endpoint::close(&self).await?)
    }
}

impl Floor for bytestream::Listener {
    async fn open(device: &str) -> Done<Self> {
        Ok(Self::open(device, ServiceId(7)).await?)
    }
    async fn on(nic: &Nic) -> Done<Self> {
        Ok(Self::on(nic, ServiceId(7)).await?)
    }
    fn name(&self) -> Name {
        self.name().clone()
    }
    async fn connect(&self, name: Name) -> Done<()> {
        Ok(self.endpoint().connect(name).await.map(drop)?)
    }
    async fn close(self) -> Done<()> {
        Ok(self.endpoint().close().await?)
    }
}

impl Floor for messages::Endpoint {
    async fn open(device: &str) -> Done<Self> {
        Ok(Self::open(device).await?)
    }
    async fn on(nic: &Nic) -> Done<Self> {
        Ok(Self::on(nic).await?)
    }
    fn name(&self) -> Name {
        self.name().clone()
    }
    async fn connect(&self, name: Name) -> Done<()> {
        Ok(self.connect(name).await.map(drop)?)
    }
    async fn close(self) -> Done<()> {
        Ok(messages::Endpoint::close(&self).await?)
    }
}

impl Floor for streams::Endpoint {
    async fn open(device: &str) -> Done<Self> {
        Ok(Self::open(device).await?)
    }
    async fn on(nic: &Nic) -> Done<Self> {
        Ok(Self::on(nic).await?)
    }
    fn name(&self) -> Name {
        self.name().clone()
    }
    async fn connect(&self, name: Name) -> Done<()> {
        Ok(self.connect(name).await.map(drop)?)
    }
    async fn close(self) -> Done<()> {
        Ok(streams::Endpoint::close(&self).await?)
    }
}

impl Floor for frames::Endpoint {
    async fn open(device: &str) -> Done<Self> {
        Ok(Self::open(device).await?)
    }
    async fn on(nic: &Nic) -> Done<Self> {
        Ok(Self::on(nic).await?)
    }
    fn name(&self) -> Name {
        self.name().clone()
    }
    async fn connect(&self, name: Name) -> Done<()> {
        Ok(self.connect(name).await.map(drop)?)
    }
    async fn close(self) -> Done<()> {
        Ok(frames::Endpoint::close(&self).await?)
    }
}

impl Floor for rpc::Server {
    async fn open(device: &str) -> Done<Self> {
        Ok(Self::builder().open(device).await?)
    }
    async fn on(nic: &Nic) -> Done<Self> {
        Ok(Self::builder().on(nic).await?)
    }
    fn name(&self) -> Name {
        self.name().clone()
    }
    async fn connect(&self, name: Name) -> Done<()> {
        Ok(rpc::Channel::connect(name).await.map(drop)?)
    }
    async fn close(self) -> Done<()> {
        Ok(rpc::Server::close(&self).await?)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endpoints_of_all_floors_are_opened_named_connected_and_closed_alike() {
    let each = async {
        meets::<Verbs>().await?;
        meets::<am::Endpoint>().await?;
        meets::<bytestream::Listener>().await?;
        meets::<messages::Endpoint>().await?;
        meets::<streams::Endpoint>().await?;
        meets::<frames::Endpoint>().await?;
        meets::<rpc::Server>().await
    };
    each.await.expect("each floor has all of it");
}

#[tokio::test]
async fn the_name_of_an_endpoint_of_another_kind_is_told_from_one_of_frames() {
    let other = am::Endpoint::open("shm", am::Handlers::new()).await.expect("it opens");
    let frames = frames::Endpoint::open("shm").await.expect("it opens");
    let why = frames.connect(other.name()).await.map(drop).expect_err("it takes no frames");
    assert!(why.to_string().contains("no endpoint of frames"), "{why}");
}
