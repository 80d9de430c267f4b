//! Tests of ProbeRTT.

use super::{CRUISE, DRAFT, LINUX, PROBE_BW, PROBE_RTT, bdp_of, pipe, state, usual_path, wait_for, wait_for_end};
use crate::pipe::at;
use thalweg_units::Span;

#[test]
fn a_10_entering_and_exiting_probe_rtt() {
    for (variant, gain) in [(LINUX, 1.0), (DRAFT, 0.5)] {
        let mut pipe = pipe(usual_path(), variant);
        let start = wait_for(&mut pipe, "6s", |row| row.value("mode") == PROBE_RTT);
        assert!(start.at >= at("5s"), "{start:?}");
        assert_eq!(start.value("cwnd_gain"), gain, "Linux has a cap instead of a gain");
        assert!((start.cwnd.0 as f64 / bdp_of(&start) - 0.5).abs() < 0.02, "half of a BDP: {start:?}");
        let end = wait_for_end(&mut pipe, "1s");
        assert_eq!(state(&end), (PROBE_BW, Some(CRUISE)));
        let lasted = end.at.since(start.at);
        assert!((200..300).contains(&lasted.as_millis()), "{lasted}");
        // The pipe is full again after ProbeRTT.
        let later = pipe.run_until(at("9s")).goodput(end.at).0 as f64;
        assert!(later > 0.97 * 50e6, "{later}");
    }
}

#[test]
fn a_11_skipping_probe_rtt_due_to_application_limited_sending() {
    for variant in [LINUX, DRAFT] {
        let mut path = usual_path();
        path.pause = Some((at("2s"), at("8s")));
        let mut pipe = pipe(path, variant);
        pipe.run_until(at("9s"));
        let after: Vec<_> = pipe.rows.iter().filter(|row| row.at > at("8s")).collect();
        assert!(!after.is_empty());
        assert!(after.iter().all(|row| row.value("mode") == PROBE_BW), "{:?}", after[0]);
        // The next ProbeRTT is due five seconds later.
        let next = wait_for(&mut pipe, "6s", |row| row.value("mode") == PROBE_RTT);
        assert!(next.at.since(at("8s")) > Span::from_secs(4), "{next:?}");
    }
}
