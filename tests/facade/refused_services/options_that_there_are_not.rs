use doorbell::rpc::{self, Status};

#[rpc::service(names = "pkg.Greeter")]
trait Misspelt {}

#[rpc::service("pkg.Greeter")]
trait WithoutAName {}

#[rpc::service(name = "pkg/Greeter")]
trait OfAPath {}

#[rpc::service(name = "A", name = "B")]
trait Twice {}

#[rpc::service(crate = doorbell)]
trait NoText {}

#[rpc::service]
trait Methods {
    #[rpc(idempotant)]
    async fn misspelt(&self) -> Result<(), Status>;
    #[rpc(name = "")]
    async fn nameless(&self) -> Result<(), Status>;
    #[rpc(inline, inline)]
    async fn twice(&self) -> Result<(), Status>;
    #[rpc]
    async fn bare(&self) -> Result<(), Status>;
}

fn main() {}
