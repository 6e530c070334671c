//! A service as a trait, with its server and a client of it.
//!
//! `cargo run --release --example greeter` runs both in one process, over UDP. In processes of
//! their own, on one machine or several:
//!
//! ```text
//! cargo run --release --example greeter -- serve udp:127.0.0.1:5000
//! cargo run --release --example greeter -- call udp:127.0.0.1:5000#7 Ann
//! ```

use std::io::{self, Write};

use anyhow::{Result, bail};
use doorbell::rpc::{self, Channel, Server, Status};

#[rpc::service]
trait Greeter {
    async fn hello(&self, name: String) -> Result<String, Status>;
}

struct English;

impl Greeter for English {
    async fn hello(&self, name: String) -> Result<String, Status> {
        Ok(format!("Hello {name}"))
    }
}

async fn serve(device: &str) -> Result<Server> {
    let greeter = GreeterServer::new(English);
    Ok(Server::builder().add_service(greeter).service(7).open(device).await?)
}

async fn call(server: &str, who: &str) -> Result<()> {
    let greeter = GreeterClient::new(Channel::connect(server).await?);
    writeln!(io::stdout(), "{}", greeter.hello(who.to_owned()).await?)?;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            let server = serve("udp:127.0.0.1:0").await?;
            call(&server.name().to_string(), "Ann").await
        }
        ["serve", device] => {
            let server = serve(device).await?;
            writeln!(io::stdout(), "serving as {}", server.name())?;
            std::future::pending().await
        }
        ["call", server, who] => call(server, who).await,
        _ => bail!("greeter takes no arguments, or `serve DEVICE`, or `call SERVER NAME`"),
    }
}
