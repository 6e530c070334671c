use doorbell::rpc::{self, Request, Status, Streaming};

#[rpc::service]
trait Greeter {
    async fn borrowed(&self, name: &str) -> Result<(), Status>;
    async fn nested(&self, names: Vec<(u8, &'static str)>) -> Result<(), Status>;
    async fn for_a_time(&self, name: std::borrow::Cow<'_, str>) -> Result<(), Status>;
    async fn any(&self, names: impl Iterator<Item = String>) -> Result<(), Status>;
    async fn itself(&self, other: Option<Self>) -> Result<(), Status>;
    async fn unnamed(&self, _: u64) -> Result<(), Status>;
    async fn taken_apart(&self, (a, b): (u64, u64)) -> Result<u64, Status> {
        Ok(a + b)
    }
    async fn stream_and_more(&self, all: Streaming<u8>, name: String) -> Result<(), Status>;
    async fn more_and_request(&self, name: String, all: Request<u8>) -> Result<(), Status>;
    async fn marked(&self, #[cfg(unix)] name: String) -> Result<(), Status>;
    #[rustfmt::skip]
    async fn many(
        &self,
        a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8, h: u8, i: u8,
        j: u8, k: u8, l: u8, m: u8, n: u8, o: u8, p: u8, q: u8,
    ) -> Result<(), Status>;
}

fn main() {}
