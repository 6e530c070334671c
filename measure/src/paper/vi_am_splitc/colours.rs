//! The colours of layers in the figures of this paper.

/// The number of the colour that a layer has in all figures, by its name.
pub fn colour(layer: &str) -> usize {
    match layer {
        "verbs" => 0,
        layer if layer.starts_with("Active Messages") => 1,
        "Split-C by RDMA reads" => 3,
        _ => 4,
    }
}
