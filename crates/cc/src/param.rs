//! Parameters of controllers.

/// A parameter of a controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Name in `cc_params`.
    pub name: &'static str,
    /// Effect of the parameter, and its unit.
    pub about: &'static str,
    /// The default value.
    pub default: f64,
    /// Minimum value.
    pub min: f64,
    /// Maximum value.
    pub max: f64,
    /// Whether only whole numbers are valid; a switch is 1 or 0.
    pub is_whole: bool,
}
