//! The known deviations, which docs/concepts/fidelity.md describes.

use crate::replay::Deviation;

/// Returns the name of a deviation if it is known.
pub fn name(algorithm: &str, deviation: &Deviation) -> Option<&'static str> {
    let is_gain = matches!(deviation.name.as_str(), "pacing_gain" | "cwnd_gain");
    (algorithm == "bbr" && is_gain && deviation.ack == 0).then_some("gains before the first ACK")
}
