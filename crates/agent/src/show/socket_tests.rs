use super::*;
use crate::show::fixture;
use crate::show::snapshot::{OpenConnections, Snapshot};
use crate::show::sorting::SortBy;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::sync::Mutex;
use std::time::Instant;
use thalweg_store::Exit;

fn start(path: &Path) -> Result<Server, Problem> {
    Server::start(path, Arc::new(fixture::agent()))
}

#[test]
fn an_agent_answers_both_request_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run").join("agent.sock");
    let _server = start(&path).unwrap();
    let status: Snapshot = serde_json::from_value(ask(&path, &Request::Status).unwrap()).unwrap();
    assert_eq!(status, fixture::agent().snapshot);
    let request = Request::Open { sort: SortBy::Cc, limit: 1 };
    let open: OpenConnections = serde_json::from_value(ask(&path, &request).unwrap()).unwrap();
    assert_eq!((open.total, open.connections), (2, vec![fixture::download()]));
}

#[test]
fn the_socket_is_owner_only_and_removed_with_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let server = start(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(server);
    assert!(!path.exists());
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    // The socket is closed but its file stays, as after a kill.
    drop(UnixListener::bind(&path).unwrap());
    assert_eq!(ask(&path, &Request::Status).unwrap_err().code, "not-recording");

    let server = start(&path).unwrap();
    let second = start(&path).unwrap_err();
    assert_eq!((second.exit, second.code), (Exit::Failed, "already-recording"));
    assert!(ask(&path, &Request::Status).is_ok(), "the first goes on");
    drop(server);
}

#[test]
fn a_file_that_is_not_a_socket_is_rejected_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "mine").unwrap();
    assert_eq!(start(&path).unwrap_err().code, "not-a-socket");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn an_invalid_or_missing_request_does_not_block_other_clients() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let _server = start(&path).unwrap();
    let silent = UnixStream::connect(&path).unwrap();
    let mut odd = UnixStream::connect(&path).unwrap();
    odd.write_all(b"{\"get\":\"out\"}\n").unwrap();
    let mut answer = String::new();
    odd.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("error") && answer.contains("status"), "{answer}");
    assert!(ask(&path, &Request::Status).is_ok());
    drop(silent);
}

#[test]
fn a_missing_agent_is_reported_with_a_hint() {
    let problem = ask(Path::new("/nonexistent/agent.sock"), &Request::Status).unwrap_err();
    assert_eq!((problem.exit, problem.code), (Exit::Failed, "not-recording"));
    assert!(problem.hint.contains("systemctl start thalweg-agent"), "{problem}");
}

/// Records the limits of the requests.
struct RequestedLimits(Mutex<Vec<usize>>);

impl Observable for RequestedLimits {
    fn status(&self) -> Snapshot {
        Snapshot::default()
    }

    fn open(&self, selection: &Selection) -> OpenConnections {
        self.0.lock().unwrap().push(selection.limit);
        OpenConnections::default()
    }
}

#[test]
fn the_requested_number_of_connections_is_capped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.sock");
    let counts = Arc::new(RequestedLimits(Mutex::default()));
    let _server = Server::start(&path, Arc::clone(&counts) as Arc<dyn Observable>).unwrap();
    for limit in [20, usize::MAX] {
        ask(&path, &Request::Open { sort: SortBy::Srtt, limit }).unwrap();
    }
    assert_eq!(*counts.0.lock().unwrap(), [20, MAX_ROWS]);
}

fn wait_for_answer(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while ask(path, &Request::Status).is_err() {
        assert!(Instant::now() < deadline, "no answer");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_removed_socket_file_is_created_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run").join("agent.sock");
    let server = start(&path).unwrap();
    fs::remove_file(&path).unwrap();
    wait_for_answer(&path);
    // For example, a service manager removes the folder.
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    wait_for_answer(&path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // A file of another process stays until that process removes it.
    fs::remove_file(&path).unwrap();
    fs::write(&path, "mine").unwrap();
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    fs::remove_file(&path).unwrap();
    wait_for_answer(&path);
    drop(server);
    assert!(!path.exists());
}
