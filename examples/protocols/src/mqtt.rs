//! MQTT: the client of the crate `rust-mqtt`, and a small broker over `mqtt-protocol-core`.

use anyhow::{Context, anyhow, bail, ensure};
use embedded_io_adapters::tokio_1::FromTokio;
use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::Event;
use mqtt_protocol_core::mqtt::packet::{GenericPacketTrait, Packet, v5_0};
use mqtt_protocol_core::mqtt::result_code::{ConnectReasonCode, SubackReasonCode};
use mqtt_protocol_core::mqtt::{Connection, Version, role};
use rust_mqtt::buffer::AllocBuffer;
use rust_mqtt::client::Client;
use rust_mqtt::client::event::Event as Heard;
use rust_mqtt::client::options::{
    ConnectOptions, DisconnectOptions, PublicationOptions, SubscriptionOptions, TopicReference,
};
use rust_mqtt::types::{MqttString, TopicFilter, TopicName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::carrier::Wire;

const TOPIC: &str = "doorbell/examples";

/// How many short messages are published before the first is read.
const SHORT: usize = 1_000;

/// How many bytes the long message has.
const LONG: usize = 1_000_000;

/// A broker for one client, which sends to it all that it publishes once it has subscribed.
pub async fn serve(mut wire: Wire) -> anyhow::Result<()> {
    let mut broker = Connection::<role::Server>::new(Version::V5_0);
    broker.set_auto_pub_response(true);
    broker.set_auto_ping_response(true);
    let mut place = vec![0; 64 << 10];
    loop {
        let len = wire.read(&mut place).await?;
        if len == 0 {
            return Ok(());
        }
        let mut bytes = Cursor::new(&place[..len]);
        // Each call takes one packet, or what there is of it.
        while bytes.position() < len as u64 {
            let mut events = broker.recv(&mut bytes);
            while !events.is_empty() {
                let mut more = Vec::new();
                for event in events {
                    more.extend(handle(&mut broker, &mut wire, event).await?);
                }
                events = more;
            }
        }
        wire.flush().await?;
    }
}

/// Does what the protocol asks for. Returns what follows from that.
async fn handle(
    broker: &mut Connection<role::Server>,
    wire: &mut Wire,
    event: Event,
) -> anyhow::Result<Vec<Event>> {
    match event {
        Event::RequestSendPacket { packet, .. } => {
            wire.write_all(&packet.to_continuous_buffer()).await?;
            Ok(Vec::new())
        }
        Event::NotifyPacketReceived(packet) => Ok(match answer(packet)? {
            Some(answer) => broker.send(answer),
            None => Vec::new(),
        }),
        Event::NotifyError(why) => Err(anyhow!("the client broke the protocol: {why:?}")),
        _ => Ok(Vec::new()),
    }
}

/// Returns what the broker answers to a packet, if that is something.
fn answer(packet: Packet) -> anyhow::Result<Option<Packet>> {
    let refused = |why| anyhow!("a packet could not be made: {why:?}");
    Ok(Some(match packet {
        Packet::V5_0Connect(_) => {
            let answer = v5_0::Connack::builder().session_present(false);
            answer.reason_code(ConnectReasonCode::Success).build().map_err(refused)?.into()
        }
        Packet::V5_0Subscribe(subscribe) => {
            let granted = vec![SubackReasonCode::GrantedQos0; subscribe.entries().len()];
            let answer = v5_0::Suback::builder().packet_id(subscribe.packet_id());
            answer.reason_codes(granted).build().map_err(refused)?.into()
        }
        Packet::V5_0Publish(publish) => {
            let topic = v5_0::Publish::builder().topic_name(publish.topic_name());
            let message = topic.map_err(refused)?.payload(publish.payload().as_slice());
            message.build().map_err(refused)?.into()
        }
        _ => return Ok(None),
    }))
}

pub async fn ask(wire: Wire) -> anyhow::Result<String> {
    let mut buffer = AllocBuffer;
    let mut client = Client::<'_, '_, _, _, 1, 1, 1, 0, 0, 0, 0>::new(&mut buffer);
    let name = MqttString::try_from("doorbell").map_err(|why| anyhow!("{why:?}"))?;
    let options = ConnectOptions::new().clean_start();
    client.connect(FromTokio::new(wire), &options, Some(name)).await.map_err(failed)?;
    let topic = MqttString::try_from(TOPIC).map_err(|why| anyhow!("{why:?}"))?;
    let filter = TopicFilter::new(topic.as_borrowed()).context("the topic is a filter")?;
    client.subscribe(filter, &SubscriptionOptions::new()).await.map_err(failed)?;
    let Heard::Suback(_) = client.poll().await.map_err(failed)? else {
        bail!("the broker does not answer the subscription");
    };

    let topic = TopicName::new(topic).context("the topic is a name")?;
    let options = PublicationOptions::new(TopicReference::Name(topic));
    for number in 0..SHORT {
        let message = format!("number {number}");
        client.publish(&options, message.as_bytes().into()).await.map_err(failed)?;
    }
    for number in 0..SHORT {
        let heard = client.poll().await.map_err(failed)?;
        let Heard::Publish(message) = heard else { bail!("{heard:?} instead of {number}") };
        ensure!(message.message.as_ref() == format!("number {number}").as_bytes(), "{message:?}");
    }
    let long = vec![7; LONG];
    client.publish(&options, long.as_slice().into()).await.map_err(failed)?;
    let Heard::Publish(message) = client.poll().await.map_err(failed)? else {
        bail!("the long message does not come");
    };
    ensure!(message.message.as_ref() == long, "{} bytes", message.message.len());
    client.disconnect(&DisconnectOptions::new()).await.map_err(failed)?;
    Ok(format!("{SHORT} messages at once, and one of {LONG} bytes, came back by the broker"))
}

fn failed(why: impl std::fmt::Debug) -> anyhow::Error {
    anyhow!("the client has failed: {why:?}")
}
