use doorbell::rpc::{self, Status};

#[rpc::service]
trait Greeter {
    fn waits(&self) -> Result<(), Status>;
    async fn nobody() -> Result<(), Status>;
    async fn changes(&mut self) -> Result<(), Status>;
    async fn consumes(self) -> Result<(), Status>;
    async fn shared(self: std::sync::Arc<Self>) -> Result<(), Status>;
    async unsafe fn dangerous(&self) -> Result<(), Status>;
    async fn generic<T>(&self, value: T) -> Result<(), Status>;
    async fn lifetime<'a>(&'a self) -> Result<(), Status>;
    async fn bounded(&self) -> Result<(), Status>
    where
        Self: Copy;
}

fn main() {}
