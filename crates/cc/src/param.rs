//! What can be set of a controller.

/// A parameter of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Name in `cc_params`.
    pub name: &'static str,
    /// What it does, and its unit.
    pub about: &'static str,
    /// The default value.
    pub default: f64,
    /// The smallest value that makes sense.
    pub min: f64,
    /// The largest value that makes sense.
    pub max: f64,
    /// Whether only whole numbers make sense: a switch is 1 or 0.
    pub is_whole: bool,
}
