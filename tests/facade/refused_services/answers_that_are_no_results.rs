use doorbell::rpc::{self, Status};

#[rpc::service]
trait Greeter {
    async fn nothing(&self);
    async fn plain(&self) -> u64;
    async fn optional(&self) -> Option<u64>;
    async fn other(&self) -> Result<u64, std::io::Error>;
    async fn borrowed(&self) -> Result<&str, Status>;
}

fn main() {}
