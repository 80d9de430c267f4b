//! Rows of BBR connections.

use crate::common::{Namespace, left_out};
use crate::stage::Stage;
use crate::traffic::connect;
use rustix::net::sockopt;
use std::time::{Duration, Instant};

/// Duration of the transfer, long enough for a judgement.
const LASTING: Duration = Duration::from_secs(2);

#[test]
fn bbr_on_a_short_path_is_short_of_cpu_only_if_its_machine_was_off_cpu() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&[]);
    let mut pair = connect(&namespaces, "10.9.8.1");
    if let Err(error) = sockopt::set_tcp_congestion(&pair.server, "bbr") {
        return left_out("BBR cannot be used here", &error.to_string());
    }
    let begin = Instant::now();
    while begin.elapsed() < LASTING {
        pair.download(50_000_000);
    }
    let away_percent = agent.status()["away_percent"].as_f64().expect("the kernel tells who was in the way");
    pair.close_by_client();
    agent.wait_for_closed(2);
    let rows = agent.end();
    let server = rows.iter().find(|row| row.text("kind") == "close" && row.text("direction") == "in").expect("its row");
    assert_eq!(server.text("cc"), "bbr");
    assert!(server.number("bbr_min_rtt_us") < 1_000, "a cable without delay: {server:?}");
    let is_limited = server.flag("cpu_limited").expect("it is judged");
    // An off-CPU share of 5 % suffices if too little was in flight. The share in the status is of a different period.
    assert!(!is_limited || away_percent > 4.0, "off CPU for {away_percent} %: {server:?}");
}
