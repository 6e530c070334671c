//! The devices that were measured, described for a reader.

use super::line::Line;

/// A name and a description for each device that occurs in `lines`: the bytes of its packets, and
/// the work that it takes from the processor.
pub fn facts(lines: &[Line]) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    for line in lines {
        let name = format!("Device {}", line.device());
        if facts.iter().all(|(known, _)| *known != name) {
            facts.extend(description(line).map(|text| (name, text)));
        }
    }
    facts
}

/// The description of the device of a line; `None` for a line that does not have it, as those of
/// earlier versions.
fn description(line: &Line) -> Option<String> {
    let json = line.json();
    let (mtu, packets) = (json["mtu"].as_u64()?, json["packets_a_frame"].as_u64()?);
    let mut text = format!("packets of up to {mtu} bytes (path MTU)");
    if packets > 1 {
        let cuts = match json["segmentation"].as_bool()? {
            true => "the interface cuts them (segmentation offload)",
            false => "the kernel cuts them (no segmentation offload)",
        };
        text += &format!(", up to {packets} in a frame: {cuts}");
    }
    text += match json["checksum"].as_bool()? {
        true => "; the interface computes checksums",
        false => "; no checksum offload",
    };
    Some(text)
}
