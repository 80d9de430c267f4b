//! The level of detail of records.

use clap::ValueEnum;
use serde::Deserialize;
use thalweg_trace::RecordRow;

/// Level of detail of a connection's records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Detail {
    /// All columns, and interim rows of open connections
    #[default]
    Full,
    /// Only rows of closed connections and of transfers, with the columns that `thalweg advise` needs
    Low,
}

impl Detail {
    /// Clears the columns that this level omits.
    pub fn reduce(self, row: &mut RecordRow) {
        if self == Detail::Low {
            empty_columns(row);
        }
    }
}

/// Declares the columns that `Detail::Low` leaves empty.
macro_rules! left_out {
    ($($column:ident,)*) => {
        #[cfg(test)]
        const LEFT_OUT: &[&str] = &[$(stringify!($column)),*];

        fn empty_columns(row: &mut RecordRow) {
            $(row.$column = None;)*
        }
    };
}

left_out! {
    duration_us,
    ip_version,
    local_address,
    local_port,
    remote_port,
    received_bytes,
    retransmitted_bytes,
    segments_out,
    segments_in,
    lost_packets,
    reordering,
    reorderings,
    ecn,
    ce_packets,
    mss_bytes,
    rtt_smoothed_us,
    rtt_p95_us,
    delivery_rate_bps,
    delivery_rate_app_limited,
    delivery_rate_max_bps,
    sndbuf_limited_us,
    app_limited_share,
    bbr_bw_bps,
    bbr_min_rtt_us,
    cpu_limited,
    buffer_bdp,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADVISE: &str = include_str!("../../../../python/thalweg/advise/counting/rows.py");
    const REFERENCE: &str = include_str!("../../../../docs/reference/agent-record.md");

    /// Column for which `thalweg advise` substitutes the largest round-trip time.
    const REPLACED: &str = "rtt_p95_us";

    #[test]
    fn low_detail_keeps_the_columns_used_by_advise() {
        let (_, columns) = ADVISE.split_once("COLUMNS: dict[str, str] = {").unwrap();
        let (columns, _) = columns.split_once('}').unwrap();
        let read: Vec<&str> = columns.split('"').skip(1).step_by(2).collect();
        assert!(read.contains(&"fct_us") && read.contains(&"acked_30s_bytes"), "{read:?}");
        let missing: Vec<_> = LEFT_OUT.iter().filter(|column| read.contains(*column)).collect();
        assert_eq!(missing, [&REPLACED]);
    }

    #[test]
    fn the_reference_lists_the_columns_that_low_detail_leaves_empty() {
        let (_, section) = REFERENCE.split_once("## Low detail").expect("a section");
        let (section, _) = section.split_once("\n## ").unwrap();
        let (_, list) = section.split_once("Empty columns:").expect("a list");
        let named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
        assert_eq!(named, LEFT_OUT);
    }

    #[test]
    fn full_detail_changes_nothing() {
        let row = RecordRow { rtt_p95_us: Some(5), fct_us: Some(7), ..RecordRow::default() };
        let (mut full, mut low) = (row.clone(), row.clone());
        Detail::Full.reduce(&mut full);
        Detail::Low.reduce(&mut low);
        assert_eq!(full, row);
        assert_eq!((low.rtt_p95_us, low.fct_us), (None, Some(7)));
    }
}
