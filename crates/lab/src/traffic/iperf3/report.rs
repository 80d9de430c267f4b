//! What iperf3 says at its end, as JSON.

use serde::Deserialize;

/// All of it that we read.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Report {
    #[serde(default)]
    start: Start,
    #[serde(default)]
    end: End,
    /// What went wrong; also there when it was interrupted.
    pub(super) error: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Start {
    #[serde(default)]
    connected: Vec<Connected>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Connected {
    socket: i64,
    local_port: u16,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct End {
    #[serde(default)]
    streams: Vec<Stream>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Stream {
    sender: Sent,
    receiver: Received,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Sent {
    socket: i64,
    seconds: f64,
    bytes: u64,
    #[serde(default)]
    retransmits: u64,
    #[serde(default)]
    min_rtt: u64,
    #[serde(default)]
    mean_rtt: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Received {
    end: f64,
}

/// What it says of one stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StreamReport {
    pub(super) seconds: f64,
    /// Handed to the socket.
    pub(super) bytes: u64,
    pub(super) retransmits: u64,
    pub(super) min_rtt_us: Option<u64>,
    pub(super) mean_rtt_us: Option<u64>,
}

impl Report {
    /// Reads what iperf3 printed; what cannot be read is a report of that.
    pub(super) fn read(printed: &[u8]) -> Report {
        serde_json::from_slice(printed).unwrap_or_else(|error| Report {
            error: Some(format!("it printed no report ({error})")),
            ..Report::default()
        })
    }

    /// What it says of the stream with this local port.
    pub(super) fn stream(&self, local_port: u16) -> Option<StreamReport> {
        let socket = self.start.connected.iter().find(|stream| stream.local_port == local_port)?.socket;
        let Stream { sender, receiver } = self.end.streams.iter().find(|stream| stream.sender.socket == socket)?;
        // Zero: not sampled.
        let rtt = |us: u64| (us > 0).then_some(us);
        Some(StreamReport {
            seconds: sender.seconds.max(receiver.end),
            bytes: sender.bytes,
            retransmits: sender.retransmits,
            min_rtt_us: rtt(sender.min_rtt),
            mean_rtt_us: rtt(sender.mean_rtt),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_apart_by_their_local_ports() {
        let report = Report::read(
            br#"{"start": {"connected": [{"socket": 5, "local_port": 61001}, {"socket": 7, "local_port": 61002}]},
                 "end": {"streams": [
                   {"sender": {"socket": 5, "seconds": 2.0, "bytes": 10, "retransmits": 1, "min_rtt": 9, "mean_rtt": 12},
                    "receiver": {"end": 2.5}},
                   {"sender": {"socket": 7, "seconds": 2.0, "bytes": 20}, "receiver": {"end": 0.0}}]}}"#,
        );
        let first = report.stream(61_001).unwrap();
        assert_eq!((first.bytes, first.retransmits, first.seconds), (10, 1, 2.5));
        assert_eq!((first.min_rtt_us, first.mean_rtt_us), (Some(9), Some(12)));
        let second = report.stream(61_002).unwrap();
        assert_eq!((second.bytes, second.min_rtt_us, second.seconds), (20, None, 2.0));
        assert_eq!(report.stream(61_003), None);
    }

    #[test]
    fn what_is_not_a_report_is_told() {
        assert!(Report::read(b"").error.is_some());
    }
}
