//! Additional configuration of the recorder's programs.

/// Constants and map sizes that are set before the programs are loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadConfig {
    /// Contents of constant sections, by section name.
    pub constants: Vec<(&'static str, Vec<u8>)>,
    /// Maximum number of entries, by map name.
    pub entries: Vec<(&'static str, u32)>,
}
