//! Recording beside a program that clears the callback flags of other programs.

use crate::common::{Namespace, wait_until};
use crate::rows::Row;
use crate::stage::Stage;
use crate::traffic::connect;
use libbpf_rs::{Link, Object, ObjectBuilder};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Embedded, because guests do not have the file.
const FORGETFUL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/forgetful.bpf.o"));

/// A program that clears callback flags, attached to a cgroup.
struct Forgetful {
    _link: Link,
    _object: Object,
    _folder: File,
}

impl Forgetful {
    fn of(cgroup: &Path) -> Forgetful {
        let object = ObjectBuilder::default().open_memory(FORGETFUL).and_then(|object| object.load());
        let object = object.expect("it is loaded");
        let folder = File::open(cgroup).expect("the cgroup");
        let link = {
            let program = object.progs_mut().next().expect("it is there");
            program.attach_cgroup(folder.as_raw_fd()).expect("it is attached")
        };
        Forgetful { _link: link, _object: object, _folder: folder }
    }
}

fn closed(rows: &[Row]) -> Vec<&Row> {
    rows.iter().filter(|row| row.text("kind") == "close").collect()
}

#[test]
fn unreported_closes_are_found_by_a_scan_and_leave_no_trace() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    // Scans run once per second.
    let agent = stage.record(&["--interim", "1s"]);
    let forgetful = Forgetful::of(&stage.cgroup);
    let of_server = namespaces.0.number();
    for _ in 0..3 {
        let mut pair = connect(&namespaces, "10.9.8.1");
        pair.download(5_000);
        pair.close_by_client();
    }
    drop(forgetful);
    assert_eq!(agent.counter("opened"), 6);
    wait_until("it is known that they are gone", || agent.status()["connections_open"] == 0);
    assert_eq!((agent.counter("closed"), agent.counter("close_rows")), (6, 6));
    let rows = agent.end();

    let closed = closed(&rows);
    assert_eq!(closed.len(), 6);
    // The kernel reports the close if a scan has run before it.
    let unseen: Vec<&&Row> = closed.iter().filter(|row| row.text("close") == "unseen").collect();
    assert!(unseen.len() >= 4, "{closed:?}");
    for row in unseen {
        assert_ne!((row.text("direction"), row.text("cc_at_open")), ("", ""), "{row:?}");
    }
    let server = rows.iter().find(|row| row.text("kind") == "close" && row.number("netns") == of_server);
    assert_eq!(server.map(|row| row.text("direction")), Some("in"));
}

#[test]
fn a_connection_that_is_still_open_at_a_scan_is_reported_again() {
    let Some(stage) = Stage::new() else { return };
    let namespaces = Namespace::pair();
    let agent = stage.record(&["--interim", "1s"]);
    let forgetful = Forgetful::of(&stage.cgroup);
    let mut pair = connect(&namespaces, "10.9.8.1");
    drop(forgetful);
    wait_until("two scans have completed", || agent.counter("interim_rows") >= 4);
    pair.download(5_000);
    pair.close_by_client();
    wait_until("both ends have closed", || agent.counter("close_rows") == 2);
    let rows = agent.end();
    let server = closed(&rows).into_iter().find(|row| row.text("direction") == "in").expect("its row");
    match server.text("close") {
        "remote_fin" => assert_eq!(server.number("acked_bytes"), 5_000),
        // If a scan cannot enable the callback (6.1), only scans detect the close.
        close => assert_eq!((close, server.flag("joined")), ("unseen", Some(false)), "{server:?}"),
    }
    assert_eq!(server.text("local_address"), "10.9.8.1");
}
