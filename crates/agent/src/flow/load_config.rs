//! Configuration of the programs that `tune` adds to the recorder's settings.

/// Constants and map sizes, set before the programs are loaded.
#[derive(Clone, Debug, Default)]
pub struct LoadConfig {
    /// Contents of sections of constants, by the section's name.
    pub constants: Vec<(&'static str, Vec<u8>)>,
    /// Maximum number of entries, by the map's name.
    pub entries: Vec<(&'static str, u32)>,
}
