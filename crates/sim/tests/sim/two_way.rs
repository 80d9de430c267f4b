//! Tests of uploads: data through the reverse link, acknowledgements through the forward one.

use crate::support::{bulk, of, run};
use thalweg_plan::plan::{Background, Buffer, Capacity, Cpu, Experiment, Load, Step};
use thalweg_sim::Error;
use thalweg_trace::{FlowRow, Memory};
use thalweg_units::{Bytes, Packets, Rate, Span, Time};

const DOWN: Rate = Rate(10_800_000);
const UP: Rate = Rate(830_000);
const RTT: Span = Span::from_millis(40);

fn rate(rate_bps: Rate) -> Capacity {
    Capacity::Steps { steps: vec![Step { at_ns: Time::ZERO, rate_bps }] }
}

/// Returns a download over an access line, and a simultaneous upload if `up`; both queues hold 100 packets.
fn access_line(cc: &str, up: bool) -> Experiment {
    let mut experiment = bulk(DOWN, RTT, 1.0, &[cc, cc], 30);
    experiment.start_jitter_ns = Span::ZERO;
    for (link, capacity) in [(&mut experiment.forward, DOWN), (&mut experiment.reverse, UP)] {
        link.capacity = rate(capacity);
        link.buffer = Buffer::Packets { packets: Packets(100) };
    }
    experiment.flows[0].name = "download".to_owned();
    experiment.flows[1].name = "upload".to_owned();
    experiment.flows[1].up = true;
    if !up {
        experiment.flows.pop();
    }
    experiment
}

fn one<'a>(rows: &'a Memory, flow: &str) -> &'a FlowRow {
    of(rows, flow)[0]
}

/// Returns the same path and flow in the opposite direction.
fn mirrored(experiment: &Experiment) -> Experiment {
    let mut mirrored = experiment.clone();
    std::mem::swap(&mut mirrored.forward, &mut mirrored.reverse);
    for flow in &mut mirrored.flows {
        flow.up = !flow.up;
    }
    let hosts = ["sender", "receiver"].map(|name| mirrored.hosts.remove(name).expect("there is one"));
    let [sender, receiver] = hosts;
    mirrored.hosts = [("sender".to_owned(), receiver), ("receiver".to_owned(), sender)].into();
    mirrored
}

/// The result depends strongly on which flow starts first, so the mean over several orders is compared.
#[test]
fn the_queue_of_an_upload_delays_acks_and_reduces_a_download_to_a_third() {
    let seeds = 1..=8;
    let mut shares = Vec::new();
    for seed in seeds {
        let [alone, both] = [false, true].map(|up| {
            let mut experiment = access_line("cubic", up);
            (experiment.seed, experiment.start_jitter_ns) = (seed, Span::from_millis(500));
            run(&experiment)
        });
        shares.push(one(&both, "download").goodput_bps / one(&alone, "download").goodput_bps);
        // The upload's queue of 100 packets takes up to 1.4 s to drain, less if many of them are acknowledgements.
        let upload = one(&both, "upload").goodput_bps / UP.0 as f64;
        assert!((0.4..0.96).contains(&upload), "{upload}");
        let rtt_s = one(&both, "download").rtt_p95_us.expect("it has samples") / 1e6;
        assert!((0.3..2.0).contains(&rtt_s), "{rtt_s}");
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.2..0.5).contains(&mean), "{mean}: {shares:?}");
}

#[test]
fn an_upload_mirrors_a_download() {
    for cc in ["cubic", "bbr"] {
        let down = bulk(DOWN, RTT, 1.0, &[cc], 10);
        let (of_down, of_up) = (run(&down), run(&mirrored(&down)));
        let [mut expected, found] = [&of_down, &of_up].map(|rows| rows.flows[0].clone());
        assert_eq!(expected.direction, None);
        expected.direction = Some("up");
        assert_eq!(found, expected);
        assert_eq!(of_up.samples, of_down.samples);
    }
}

#[test]
fn rows_have_a_direction_if_any_flow_is_an_upload() {
    let rows = run(&access_line("cubic", true));
    let directions = ["download", "upload"].map(|flow| one(&rows, flow).direction);
    assert_eq!(directions, [Some("down"), Some("up")]);
}

#[test]
fn the_reverse_queue_belongs_to_uploads() {
    let rows = run(&access_line("cubic", true));
    let full = |link| rows.queue.iter().filter(|row| row.link == link).map(|row| row.backlog_packets).max();
    assert_eq!(full("reverse"), Some(100));
    let dropped = |link| rows.queue.iter().rfind(|row| row.link == link).map(|row| row.dropped_packets);
    assert!(dropped("reverse") > Some(0), "{:?}", dropped("reverse"));
    let alone = run(&access_line("cubic", false));
    assert!(alone.queue.iter().filter(|row| row.link == "reverse").all(|row| row.backlog_packets < 100));
}

#[test]
fn socket_buffers_limit_a_flow_at_their_own_host() {
    let limited = |host: &str, change: fn(&mut thalweg_plan::plan::Host)| {
        let mut experiment = mirrored(&bulk(Rate::from_mbps(100), Span::from_millis(100), 1.0, &["cubic"], 10));
        change(experiment.hosts.get_mut(host).expect("there is one"));
        run(&experiment).flows[0].goodput_bps / 1e6
    };
    let sends = |host: &mut thalweg_plan::plan::Host| host.sndbuf_max_bytes = Bytes(400_000);
    let receives = |host: &mut thalweg_plan::plan::Host| host.rcvbuf_max_bytes = Bytes(400_000);
    // The receive window is 0.62 of the buffer, per 100 ms.
    assert!(limited("receiver", sends) < 33.0 && (16.0..20.0).contains(&limited("sender", receives)));
    assert!(limited("sender", sends) > 60.0 && limited("receiver", receives) > 60.0);
}

#[test]
fn extra_rtt_and_host_jitter_apply_to_both_directions() {
    let mut experiment = access_line("cubic", true);
    experiment.flows[1].extra_rtt_ns = Span::from_millis(30);
    let rows = run(&experiment);
    let min_ms = |flow| one(&rows, flow).rtt_min_us.expect("it has samples") / 1e3;
    assert!((40.0..57.0).contains(&min_ms("download")), "{}", min_ms("download"));
    assert!((70.0..87.0).contains(&min_ms("upload")), "{}", min_ms("upload"));
    for host in ["sender", "receiver"] {
        let mut jittered = access_line("cubic", true);
        jittered.hosts.get_mut(host).expect("there is one").delay_jitter_ns = Span::from_millis(5);
        assert_ne!(run(&jittered).flows, run(&access_line("cubic", true)).flows, "{host}");
    }
}

#[test]
fn udp_uploads_use_the_rate_of_the_reverse_link() {
    let mut experiment = access_line("cubic", true);
    experiment.background = vec![Background { rate_bps: Rate(400_000), start_ns: Time::ZERO, stop_ns: None, up: true }];
    let rows = run(&experiment);
    let upload = one(&rows, "upload").goodput_bps / UP.0 as f64;
    assert!((0.3..0.55).contains(&upload), "{upload}");
    let mut down = experiment.clone();
    down.background[0].up = false;
    let upload = one(&run(&down), "upload").goodput_bps / UP.0 as f64;
    assert!(upload > 0.7, "{upload}");
}

#[test]
fn a_host_with_a_cpu_share_acknowledges_an_upload_only_while_on_cpu() {
    let mut experiment = mirrored(&bulk(Rate::from_mbps(100), Span::from_millis(10), 2.0, &["cubic"], 4));
    let cpu = |cost| Cpu {
        slice_ns: Span::from_millis(1),
        period_ns: Span::from_millis(2),
        per_packet_ns: cost,
        per_ack_ns: cost,
        slice_jitter_ppm: 0,
        credit: None,
    };
    let mut mbps = |cost| {
        experiment.hosts.get_mut("sender").expect("there is one").cpu = Some(cpu(cost));
        run(&experiment).flows[0].goodput_bps / 1e6
    };
    // 100 us per received packet on half a CPU: 57.9 Mbit/s of payload.
    assert!(mbps(Span::from_micros(1)) > 85.0);
    let limited = mbps(Span::from_micros(100));
    assert!((40.0..57.93).contains(&limited), "{limited}");
}

#[test]
fn an_unlimited_upload_over_an_unlimited_link_is_rejected() {
    let mut experiment = access_line("cubic", true);
    experiment.reverse.capacity = Capacity::Unlimited;
    let result = |experiment: &Experiment| {
        thalweg_sim::run(experiment, &Default::default(), &mut thalweg_trace::Nothing, &|| false)
    };
    match result(&experiment) {
        Err(Error::Invalid { place, .. }) => assert_eq!(place, "flows.upload.up"),
        other => panic!("{other:?}"),
    }
    let mut sized = experiment.clone();
    sized.flows[1].load = Load::Sizes { sizes_bytes: vec![Bytes(1_000_000)] };
    assert!(result(&sized).is_ok());
    experiment.hosts.get_mut("receiver").expect("there is one").sndbuf_max_bytes = Bytes(100_000);
    assert!(result(&experiment).is_ok());
}
