//! Applications as a scenario names them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An application by name, or a table with its parameters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum App {
    /// With default parameters.
    Name(AppName),
    /// With parameters.
    Table(Box<AppTable>),
}

/// Applications.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AppName {
    /// Adaptive video: segments whose bitrate follows from the playback buffer (BBA-0, Huang et al., SIGCOMM 2014).
    Video,
    /// Pages whose objects reference one another, over several connections.
    Web,
    /// A video call at a constant rate, in frames, over a TCP connection.
    Call,
    /// Remote procedure calls that arrive at random, whether or not earlier ones have finished.
    Rpc,
    /// A small message at a regular interval, which measures the latency of the path, as in the RRUL test.
    Probe,
}

/// An application with parameters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AppTable {
    /// The application.
    pub name: AppName,
    /// Available bitrates, in ascending order (video; default 235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300 and 5800
    /// kbit/s).
    #[schemars(extend("items" = serde_json::json!({ "type": "string", "format": "rate" })))]
    pub bitrates: Option<Vec<String>>,
    /// Playing time of a segment (video; default 4 s).
    #[schemars(extend("format" = "time"))]
    pub segment: Option<String>,
    /// Capacity of the playback buffer in playing time, at least two segments (video; default 30 s).
    #[schemars(extend("format" = "time"))]
    pub buffer: Option<String>,
    /// Number of objects of a page, the document included (web; default 70).
    #[schemars(range(min = 1, max = 10_000))]
    pub objects: Option<u32>,
    /// Length of the longest chain of objects, each of which is found in the previous one (web; default 3).
    #[schemars(range(min = 1, max = 100))]
    pub depth: Option<u32>,
    /// Sizes, each as likely as the others, of objects (web; default 0.3 to 200 kB with a mean of 33 kB) or messages
    /// (rpc; default 0.2 to 12 kB with a median of 1.5 kB).
    #[schemars(extend("items" = serde_json::json!({ "type": "string", "format": "size" })))]
    pub sizes: Option<Vec<String>>,
    /// Maximum number of connections (web; default 6), or number of connections, which carry messages in turn (rpc;
    /// default 1).
    #[schemars(range(min = 1, max = 1000))]
    pub connections: Option<u32>,
    /// Number of consecutive pages (web; default 1).
    #[schemars(range(min = 1, max = 1_000_000))]
    pub pages: Option<u32>,
    /// Pause between the last object of a page and the start of the next page (web; default 1 s).
    #[schemars(extend("format" = "time"))]
    pub think: Option<String>,
    /// Rate of the call (call; default 1.5 Mbit/s).
    #[schemars(extend("format" = "rate"))]
    pub bitrate: Option<String>,
    /// Frames per second (call; default 30).
    #[schemars(range(min = 1, max = 1000))]
    pub fps: Option<u32>,
    /// The picture freezes if the gap between the arrivals of two frames exceeds three frame intervals, and one frame
    /// interval by more than this time (call; default 150 ms).
    #[schemars(extend("format" = "time"))]
    pub freeze: Option<String>,
    /// Arrivals per second, or the load that they offer (rpc; default 100/s).
    #[schemars(extend("format" = "arrival-rate"))]
    pub rate: Option<String>,
    /// Time between messages (probe; default 200 ms).
    #[schemars(extend("format" = "time"))]
    pub interval: Option<String>,
    /// Size of a message (probe; default 64 B).
    #[schemars(extend("format" = "size"))]
    pub size: Option<String>,
}
