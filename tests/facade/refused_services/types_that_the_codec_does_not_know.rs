use doorbell::rpc::{self, Raw, Status};

struct Opaque;

#[rpc::service]
trait Asked {
    async fn ask(&self, what: Opaque) -> Result<u64, Status>;
}

#[rpc::service]
trait Answering {
    async fn ask(&self) -> Result<Opaque, Status>;
}

#[rpc::service(codec = Raw)]
trait Bytes {
    async fn ask(&self, what: String) -> Result<bytes::Bytes, Status>;
}

fn main() {}
