//! Parses synthetic messages and arbitrary bytes.

use super::netlink::{Consistency, Progress, attributes, read_datagram};
use super::qdiscs::{Count, QdiscMessage, parse_handle};
use super::survey::is_remnant;
use super::{CcInfo, Socket, TcpInfo, state_key};
use proptest::prelude::*;

fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(u16::try_from(4 + content.len()).expect("it is short").to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from(u32::try_from(16 + body.len()).expect("it is short").to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(body);
    bytes
}

/// Returns a structure of this length with numbers at the given offsets.
fn structure(length: usize, numbers: &[(usize, u32)]) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (offset, number) in numbers {
        bytes[*offset..offset + 4].copy_from_slice(&number.to_ne_bytes());
    }
    bytes
}

fn read(bytes: &[u8]) -> Result<(Progress, Consistency, Vec<Vec<u8>>), &'static str> {
    let mut consistency = Consistency::Whole;
    let mut bodies = Vec::new();
    let progress = read_datagram(bytes, 7, &mut consistency, &mut |body| {
        bodies.push(body.to_vec());
        Ok(())
    })?;
    Ok((progress, consistency, bodies))
}

#[test]
fn responses_are_returned_until_the_dump_is_done() {
    let more = [message(20, 2, 7, b"one!"), message(20, 2, 7, b"two, padded"), vec![0]].concat();
    assert_eq!(read(&more), Ok((Progress::More, Consistency::Whole, vec![b"one!".into(), b"two, padded".into()])));
    let done = [message(20, 2, 7, b"last"), message(3, 2, 7, &[0; 4])].concat();
    assert_eq!(read(&done), Ok((Progress::Done, Consistency::Whole, vec![b"last".into()])));
}

#[test]
fn responses_to_an_earlier_request_are_skipped() {
    let stale = [message(20, 2, 6, b"old."), message(3, 2, 6, &[0; 4]), message(20, 2, 7, b"new.")].concat();
    assert_eq!(read(&stale), Ok((Progress::More, Consistency::Whole, vec![b"new.".into()])));
}

#[test]
fn a_netlink_error_is_reported_with_its_errno_and_an_interrupted_dump_is_detected() {
    let refused = message(2, 0, 7, &(-2i32).to_ne_bytes());
    assert_eq!(read(&refused), Ok((Progress::Refused(rustix::io::Errno::NOENT), Consistency::Whole, vec![])));
    let interrupted = message(3, 2 | 0x10, 7, &[0; 4]);
    assert_eq!(read(&interrupted), Ok((Progress::Done, Consistency::Interrupted, vec![])));
}

#[test]
fn a_netlink_error_with_an_invalid_errno_is_an_error() {
    for impossible in [-4096, i32::MIN] {
        assert!(read(&message(2, 0, 7, &impossible.to_ne_bytes())).is_err(), "{impossible}");
    }
}

#[test]
fn a_truncated_message_is_an_error() {
    let message_bytes = message(20, 2, 7, b"four");
    for length in 1..message_bytes.len() {
        assert!(read(&message_bytes[..length]).is_err(), "{length} bytes");
    }
    let shorter_than_its_header = [8u32.to_ne_bytes(), [0; 4], 7u32.to_ne_bytes(), [0; 4]].concat();
    assert!(read(&shorter_than_its_header).is_err());
}

#[test]
fn a_connection_is_parsed_from_its_message() {
    let mut body = vec![0; 72];
    body[0] = 2;
    body[4..12].copy_from_slice(&[0x12, 0x34, 0x14, 0x51, 192, 0, 2, 1]);
    body[24..28].copy_from_slice(&[198, 51, 100, 7]);
    let numbers = [
        (24, 20),
        (28, 4),
        (32, 3),
        (36, 1),
        (76, 0x7fff_ffff),
        (80, 33),
        (120, 1001),
        (192, 90),
        (196, 7),
        (200, 3000),
        (208, 500),
    ];
    body.extend(attribute(2, &structure(232, &numbers)));
    body.extend(attribute(4, b"bbr\0"));
    body.extend(attribute(16 | 0x8000, &structure(20, &[(0, 125_000), (4, 1), (8, 20_000), (12, 739), (16, 512)])));
    let socket = Socket::parse(&body).expect("it is whole");
    assert_eq!(
        (socket.local.to_string(), socket.remote.to_string()),
        ("192.0.2.1:4660".into(), "198.51.100.7:5201".into())
    );
    assert_eq!(socket.info.inflight_packets, 20 - 4 - 3 + 1);
    assert_eq!((socket.info.cwnd_packets, socket.info.ssthresh_packets), (33, None));
    assert_eq!(socket.info.acked_bytes, 1000);
    assert_eq!(socket.info.bytes_sent, 2500, "without retransmissions");
    assert_eq!(socket.info.marked_segments, 7);
    assert_eq!(socket.info.timeouts, None, "this kernel does not have them");
    let bw_bps = 8 * ((1 << 32) + 125_000);
    assert_eq!(socket.cc, CcInfo::Bbr { bw_bps, min_rtt_us: 20_000, pacing_gain: 739, cwnd_gain: 512 });
}

#[test]
fn a_closed_connection_is_recognised() {
    let is_closed = |state: u8, received_segments: u32| {
        let mut bytes = structure(232, &[(140, received_segments)]);
        bytes[0] = state;
        TcpInfo::parse(&bytes).expect("it is long enough").is_closed()
    };
    assert!(is_closed(7, 9));
    assert!(!is_closed(1, 1) && !is_closed(11, 9), "established, and closing");
    assert!(is_closed(1, 0), "it was aborted after the kernel had read its state");
}

#[test]
fn a_connection_without_tcp_info_or_with_a_short_one_is_an_error() {
    assert!(Socket::parse(&[0; 71]).is_err());
    assert!(Socket::parse(&[0; 72]).is_err());
    let short = [vec![0; 72], attribute(2, &[0; 231])].concat();
    assert!(Socket::parse(&short).is_err());
}

#[test]
fn values_that_the_kernel_has_not_measured_are_absent() {
    let unknown = [(104, u32::MAX), (108, u32::MAX), (148, u32::MAX), (76, 0x7fff_ffff)];
    let info = TcpInfo::parse(&structure(248, &unknown)).expect("it is long enough");
    assert_eq!((info.pacing_rate_bps, info.delivery_rate_bps), (None, None));
    assert_eq!((info.srtt_us, info.min_rtt_us, info.ssthresh_packets), (None, None, None));
    assert_eq!(info.timeouts, Some(0));
}

#[test]
fn an_application_limited_delivery_rate_is_omitted() {
    let mut bytes = structure(248, &[(160, 1_000_000)]);
    assert_eq!(TcpInfo::parse(&bytes).and_then(|info| info.delivery_rate_bps), Some(8_000_000));
    bytes[7] = if cfg!(target_endian = "little") { 1 } else { 0x80 };
    assert_eq!(TcpInfo::parse(&bytes).and_then(|info| info.delivery_rate_bps), None);
}

#[test]
fn every_reported_key_is_declared() {
    let bytes = [1; 20];
    for info in [CcInfo::parse_bbr(&bytes), CcInfo::parse_vegas(&bytes), CcInfo::parse_dctcp(&bytes)] {
        let mut count = 0;
        info.expect("it is long enough").report(&mut |key, _| {
            assert_eq!(state_key(key), Some(key));
            count += 1;
        });
        assert!(count >= 4);
    }
    assert_eq!(state_key("warp_factor"), None);
}

fn qdisc(kind: &[u8], packets: u32, drops: u32, own: &[u8]) -> Vec<u8> {
    let basic = structure(16, &[(0, 1514 * packets), (8, packets)]);
    let queue = structure(20, &[(0, 2), (4, 2 * 1514), (8, drops)]);
    let statistics = [attribute(1, &basic), attribute(3, &queue)].concat();
    [vec![0; 20], attribute(1, kind), attribute(4, own), attribute(7 | 0x8000, &statistics)].concat()
}

#[test]
fn wrapping_32_bit_counters_are_extended() {
    let mut count = Count::default();
    for (drops, dropped_packets) in [(10, 10), (u32::MAX, u64::from(u32::MAX)), (4, (1 << 32) + 4)] {
        count.follow(&QdiscMessage::parse(&qdisc(b"tbf\0", 5, drops, &[])).expect("it is whole"), 14);
        let (sent_bytes, backlog_bytes) = (5 * 1500, 2 * 1500);
        let (sent_packets, backlog_packets, marked_packets) = (5, 2, 0);
        let limit_drops = None;
        let expected = Count {
            sent_bytes,
            sent_packets,
            backlog_bytes,
            backlog_packets,
            dropped_packets,
            marked_packets,
            limit_drops,
        };
        assert_eq!(count, expected);
    }
}

#[test]
fn marks_are_parsed_from_the_statistics_of_each_qdisc_kind() {
    let offsets = [
        (&b"codel\0"[..], 24),
        (b"codel\0", 32),
        (b"fq_codel\0", 12),
        (b"fq_codel\0", 28),
        (b"pie\0", 36),
        (b"fq_pie\0", 16),
        (b"red\0", 12),
        (b"fq\0", 80),
        (b"dualpi2\0", 24),
    ];
    for (kind, offset) in offsets {
        let mut count = Count::default();
        let own = structure(104, &[(offset, 77)]);
        count.follow(&QdiscMessage::parse(&qdisc(kind, 5, 0, &own)).expect("it is whole"), 14);
        assert_eq!(count.marked_packets, 77, "{kind:?}");
    }
}

#[test]
fn drops_at_the_limit_are_distinguished_if_the_kernel_reports_them() {
    let early = |kind: &[u8], numbers: &[(usize, u32)]| {
        let mut count = Count::default();
        let own = structure(104, numbers);
        count.follow(&QdiscMessage::parse(&qdisc(kind, 5, 30, &own)).expect("it is whole"), 14);
        count.early_drops()
    };
    assert_eq!(early(b"codel\0", &[(20, 10)]), Some(20));
    assert_eq!(early(b"fq_codel\0", &[(8, 10)]), Some(20));
    assert_eq!(early(b"pie\0", &[(24, 30), (28, 10)]), Some(20));
    assert_eq!(early(b"fq_pie\0", &[(4, 30), (8, 10)]), Some(20));
    assert_eq!(early(b"red\0", &[(0, 20), (4, 10)]), Some(20));
    assert_eq!(early(b"bfifo\0", &[]), Some(0));
    assert_eq!(early(b"dualpi2\0", &[]), None);
    assert_eq!(early(b"cake\0", &[]), None);
}

#[test]
fn cake_marks_are_summed_over_all_tins() {
    let tin = |marks: u32| attribute(1, &attribute(8, &marks.to_ne_bytes()));
    let tins = attribute(10, &[tin(3), tin(4)].concat());
    let basic = structure(16, &[(8, 5)]);
    let statistics = [attribute(1, &basic), attribute(4, &tins)].concat();
    let message = [vec![0; 20], attribute(1, b"cake\0"), attribute(7, &statistics)].concat();
    let mut count = Count::default();
    count.follow(&QdiscMessage::parse(&message).expect("it is whole"), 14);
    assert_eq!(count.marked_packets, 7);
}

#[test]
fn handles_are_hexadecimal() {
    assert_eq!((parse_handle("1:"), parse_handle("8001:")), (Some(0x1_0000), Some(0x8001_0000)));
    for handle in ["", ":", "1", "1:1", "+1:", "10000:", "x:"] {
        assert_eq!(parse_handle(handle), None, "{handle}");
    }
}

proptest! {
    #[test]
    fn the_parser_does_not_panic_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes);
        let _ = Socket::parse(&bytes);
        let _ = TcpInfo::parse(&bytes);
        let _ = QdiscMessage::parse(&bytes);
        let _ = attributes(&bytes).count();
    }

    #[test]
    fn the_parser_does_not_panic_on_arbitrary_bytes_behind_valid_headers(
        cc in prop::collection::vec(any::<u8>(), 0..40),
        info in prop::collection::vec(any::<u8>(), 232..300),
        kind in prop::sample::select(vec![3u16, 4, 9, 16]),
        cut in 0..16usize,
    ) {
        let body = [vec![0; 72], attribute(2, &info), attribute(kind, &cc)].concat();
        let datagram = message(20, 2, 7, &body);
        let mut count = 0;
        let outcome = read_datagram(&datagram, 7, &mut Consistency::Whole, &mut |body| {
            count += 1;
            Socket::parse(body).map(|socket| socket.cc.report(&mut |_, value| assert!(value.is_finite())))
        });
        prop_assert_eq!((outcome, count), (Ok(Progress::More), 1));
        let _ = Socket::parse(&body[..body.len() - cut]);
    }

    #[test]
    fn counting_does_not_panic_on_arbitrary_counters(
        kind in prop::collection::vec(any::<u8>(), 0..10),
        (packets, drops, overhead) in (0..2_000_000u32, any::<u32>(), any::<i32>()),
        own in prop::collection::vec(any::<u8>(), 0..80),
        cut in 0..40usize,
    ) {
        let body = qdisc(&kind, packets, drops, &own);
        Count::default().follow(&QdiscMessage::parse(&body).expect("it is whole"), i64::from(overhead));
        let _ = QdiscMessage::parse(&body[..body.len() - cut]);
    }

    #[test]
    fn attributes_are_parsed_back(contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..9)) {
        let bytes: Vec<u8> = contents.iter().flat_map(|content| attribute(5, content)).collect();
        let parsed: Result<Vec<_>, _> = attributes(&bytes).collect();
        let expected: Vec<(u16, &[u8])> = contents.iter().map(|content| (5, content.as_slice())).collect();
        prop_assert_eq!(parsed, Ok(expected));
    }
}

#[test]
fn a_connection_without_counters_is_a_remnant() {
    let mut body = structure(72, &[]);
    assert!(is_remnant(&body), "no attributes");
    body.extend(attribute(8, &[0]));
    assert!(is_remnant(&body), "an attribute of another kind");
    body.extend(attribute(2, &[0; 8]));
    assert!(!is_remnant(&body), "tcp_info, which is too short: an error to report");
    assert!(!is_remnant(&[0; 71]), "a message that is cut short");
}
