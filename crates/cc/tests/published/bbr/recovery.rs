//! Tests of the effects of losses and timeouts on cwnd.

use super::{PROBE_BW, STARTUP, phase, run, usual_path};
use crate::pipe::{Pipe, at};
use thalweg_cc::CaState;
use thalweg_units::{Packets, Probability};

#[test]
fn the_first_round_of_recovery_conserves_packets_and_recovery_restores_cwnd() {
    let mut path = usual_path();
    path.lose.insert(8_000);
    let pipe = run(path, &[], "4s");
    let enters = pipe.rows.iter().position(|row| row.state == CaState::Recovery).expect("a packet is lost");
    let leaves = enters + pipe.rows[enters..].iter().position(|row| row.state == CaState::Open).expect("and resent");
    let (before, first, open) = (&pipe.rows[enters - 1], &pipe.rows[enters], &pipe.rows[leaves]);
    assert_eq!(before.value("mode"), PROBE_BW);
    assert_eq!(first.cwnd, first.inflight + first.acked);
    assert!(first.cwnd < before.cwnd);
    assert!(open.cwnd >= before.cwnd, "{open:?}");
}

#[test]
fn each_loss_in_recovery_lowers_cwnd_by_one_packet() {
    let mut path = usual_path();
    path.loss = Probability::new(0.08).expect("a probability");
    let pipe = run(path, &[], "5s");
    let mut losses = 0;
    for pair in pipe.rows.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let lost = (after.lost - before.lost).0;
        if before.state != CaState::Recovery || after.state != CaState::Recovery || lost <= after.acked.0 {
            continue;
        }
        losses += 1;
        let most = (before.cwnd.0 + after.acked.0 - lost).max((after.inflight + after.acked).0).max(4);
        assert!(after.cwnd.0 <= most, "{before:?} {after:?}");
    }
    assert!(losses > 10, "{losses}");
}

#[test]
fn cwnd_is_restored_after_a_timeout_and_the_full_bandwidth_check_restarts() {
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    pipe.run_until(at("3s"));
    let before = pipe.window.cwnd;
    pipe.time_out();
    assert_eq!(pipe.window.cwnd, Packets(1));
    let count = pipe.rows.len();
    pipe.run_until(at("4s"));
    let open = pipe.rows[count..].iter().find(|row| row.state == CaState::Open).expect("it recovers");
    assert!(open.cwnd.0 + 2 >= before.0, "{open:?}");

    let untouched = phase(&run(usual_path(), &[], "2s"), STARTUP).1.value("round");
    let mut pipe = Pipe::new(usual_path(), "bbr", &[]);
    while pipe.rows.last().is_none_or(|row| row.value("round") < untouched - 1.0) {
        pipe.step();
    }
    pipe.time_out();
    pipe.run_until(at("3s"));
    assert!(phase(&pipe, STARTUP).1.value("round") >= untouched + 2.0);
}
