//! WebSocket, by tokio-tungstenite.

use anyhow::{Context, ensure};
use futures_util::{SinkExt, StreamExt};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{accept_async, client_async};

use crate::carrier::Wire;

/// How many short messages are sent before the first is read.
const SHORT: usize = 10_000;

/// How many bytes the long message has.
const LONG: usize = 3_000_000;

/// Sends back each message.
pub async fn serve(wire: Wire) -> anyhow::Result<()> {
    let mut socket = accept_async(wire).await?;
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() || message.is_binary() {
            socket.send(message).await?;
        }
    }
    Ok(())
}

pub async fn ask(wire: Wire) -> anyhow::Result<String> {
    let (mut socket, _) = client_async("ws://doorbell/", wire).await?;
    for number in 0..SHORT {
        socket.send(Message::text(format!("number {number}"))).await?;
    }
    for number in 0..SHORT {
        let message = socket.next().await.context("the server has left")??;
        ensure!(message == Message::text(format!("number {number}")), "{message:?} of {number}");
    }
    let long = Message::binary(vec![7; LONG]);
    socket.send(long.clone()).await?;
    let message = socket.next().await.context("the server has left")??;
    ensure!(message == long, "{} bytes", message.len());
    socket.close(None).await?;
    // The server's own close, and then the end.
    while let Some(message) = socket.next().await {
        message?;
    }
    Ok(format!("{SHORT} messages at once, and one of {LONG} bytes, came back"))
}
