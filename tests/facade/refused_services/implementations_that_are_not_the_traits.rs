use std::rc::Rc;

use doorbell::rpc::{self, Router, Status};

#[rpc::service]
trait Greeter {
    async fn hello(&self, name: String) -> Result<String, Status>;
}

struct NotSend;

impl Greeter for NotSend {
    async fn hello(&self, name: String) -> Result<String, Status> {
        let name = Rc::new(name);
        std::future::ready(()).await;
        Ok(name.to_string())
    }
}

struct OtherTypes;

impl Greeter for OtherTypes {
    async fn hello(&self, name: String) -> Result<usize, Status> {
        Ok(name.len())
    }
}

struct NotSync(Rc<()>);

impl Greeter for NotSync {
    async fn hello(&self, name: String) -> Result<String, Status> {
        Ok(name)
    }
}

struct Nothing;

fn main() {
    let _: Router = GreeterServer::new(Nothing).into();
}
