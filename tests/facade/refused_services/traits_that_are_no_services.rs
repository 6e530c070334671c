use doorbell::rpc::{self, Status};

#[rpc::service]
trait Generic<T> {
    async fn get(&self) -> Result<T, Status>;
}

#[rpc::service]
trait Bounded
where
    Self: Copy,
{
    async fn get(&self) -> Result<u64, Status>;
}

#[rpc::service]
unsafe trait Dangerous {
    async fn get(&self) -> Result<u64, Status>;
}

#[rpc::service]
trait MoreThanMethods {
    type Message;
    const LIMIT: u64;
    async fn get(&self) -> Result<u64, Status>;
}

#[rpc::service]
trait Names {
    async fn new(&self) -> Result<u64, Status>;
    async fn get(&self) -> Result<u64, Status>;
    #[rpc(name = "get")]
    async fn fetch(&self) -> Result<u64, Status>;
}

#[rpc::service]
trait Capitals {
    async fn user_id(&self) -> Result<u64, Status>;
    #[allow(non_snake_case)]
    async fn user_Id(&self) -> Result<u64, Status>;
    async fn set(&self) -> Result<u64, Status>;
    async fn set(&self) -> Result<u64, Status>;
}

#[rpc::service]
struct NoTrait;

fn main() {}
