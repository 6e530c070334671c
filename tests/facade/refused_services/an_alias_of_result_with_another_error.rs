use doorbell::rpc;

type Result<T> = std::result::Result<T, std::io::Error>;

#[rpc::service]
trait Greeter {
    async fn hello(&self, name: String) -> Result<String>;
}

fn main() {}
