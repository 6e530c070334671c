//! Redis: the client of the crate `redis`, and a small server over the frames of the crate
//! `redis-protocol`.

use std::collections::HashMap;

use anyhow::{Context, ensure};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, RedisConnectionInfo, pipe};
use redis_protocol::codec::Resp2;
use redis_protocol::resp2::types::BytesFrame as Frame;
use tokio_util::codec::Framed;

use crate::carrier::Wire;

/// How many commands are sent before the first is answered.
const COMMANDS: usize = 20_000;

/// How many bytes the long value has.
const LONG: usize = 3_000_000;

/// Serves the commands `GET`, `SET` and `INCRBY`. To others, such as those by which a client
/// introduces itself, it says so much.
pub async fn serve(wire: Wire) -> anyhow::Result<()> {
    let mut frames = Framed::new(wire, Resp2::default());
    let mut values: HashMap<Bytes, Bytes> = HashMap::new();
    while let Some(frame) = frames.next().await {
        let answer = answer(frame?, &mut values)?;
        // Answers to commands that came together leave together.
        frames.feed(answer).await?;
        if frames.read_buffer().is_empty() {
            SinkExt::<Frame>::flush(&mut frames).await?;
        }
    }
    Ok(())
}

fn answer(command: Frame, values: &mut HashMap<Bytes, Bytes>) -> anyhow::Result<Frame> {
    let Frame::Array(words) = command else { anyhow::bail!("{command:?} is no command") };
    let words: Option<Vec<Bytes>> = words
        .into_iter()
        .map(|word| match word {
            Frame::BulkString(word) => Some(word),
            _ => None,
        })
        .collect();
    let words = words.context("a command is an array of strings")?;
    Ok(match &words[..] {
        [get, key] if get.eq_ignore_ascii_case(b"GET") => {
            values.get(key).map_or(Frame::Null, |value| Frame::BulkString(value.clone()))
        }
        [set, key, value] if set.eq_ignore_ascii_case(b"SET") => {
            values.insert(key.clone(), value.clone());
            Frame::SimpleString("OK".into())
        }
        [incr, key, more] if incr.eq_ignore_ascii_case(b"INCRBY") => {
            let value = values.entry(key.clone()).or_insert_with(|| "0".into());
            let number = |bytes| anyhow::Ok(std::str::from_utf8(bytes)?.parse::<i64>()?);
            let number = number(value)?.wrapping_add(number(more)?);
            *value = number.to_string().into();
            Frame::Integer(number)
        }
        _ => Frame::Error("ERR this server has GET, SET and INCRBY".into()),
    })
}

pub async fn ask(wire: Wire) -> anyhow::Result<String> {
    let info = RedisConnectionInfo::default();
    let (mut client, connection) = MultiplexedConnection::new(&info, wire).await?;
    let connection = tokio::spawn(connection);
    let mut commands = pipe();
    for _ in 0..COMMANDS {
        commands.incr("counter", 1);
    }
    let counts: Vec<usize> = commands.query_async(&mut client).await?;
    ensure!(counts.iter().copied().eq(1..=COMMANDS), "{} counts", counts.len());
    let long = vec![7_u8; LONG];
    let () = client.set("long", &long).await?;
    let found: Vec<u8> = client.get("long").await?;
    ensure!(found == long, "{} bytes", found.len());
    drop(client);
    connection.await?;
    Ok(format!("{COMMANDS} commands in one pipeline, and a value of {LONG} bytes, came back"))
}
