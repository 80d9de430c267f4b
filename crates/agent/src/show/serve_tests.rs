use super::*;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Timeouts longer than any test, so that no client is served only because others were disconnected.
const ENDLESS: Timeouts = {
    let hour = Duration::from_secs(3600);
    Timeouts { asking: hour, answered: hour, leaving: hour }
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Answers a line that contains a number with that number of bytes.
struct Lines(TcpListener);

impl Endpoint for Lines {
    fn listener(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn admits(&self, _client: &OwnedFd) -> bool {
        true
    }

    fn answer(&self, request: &[u8], is_over: bool) -> Option<Vec<u8>> {
        let line = std::str::from_utf8(request).ok()?;
        let line =
            line.split_once('\n').map(|(line, _)| line).or(Some(line).filter(|line| is_over && !line.is_empty()));
        Some(vec![b'x'; line?.parse().unwrap_or(1)])
    }
}

fn serve(timeouts: Timeouts) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    start_with("lines", Lines(listener), timeouts).unwrap();
    address
}

/// Sends a request and returns the number of bytes of the response.
fn ask(address: SocketAddr, request: &str) -> usize {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    answer.len()
}

#[test]
fn silent_clients_do_not_delay_others() {
    let address = serve(ENDLESS);
    let _silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert_eq!(ask(address, "7\n"), 7);
}

#[test]
fn slow_clients_do_not_delay_others() {
    let address = serve(ENDLESS);
    let mut slow: Vec<TcpStream> = (0..2 * MAX_CLIENTS).map(|_| TcpStream::connect(address).unwrap()).collect();
    // Some clients request more than the kernel buffers, and never read.
    for (number, client) in slow.iter_mut().enumerate() {
        let _ = client.write_all(if number % 4 == 0 { b"9000000\n" } else { b"1" });
    }
    assert_eq!(ask(address, "7\n"), 7);
    assert_eq!(ask(address, "7\n"), 7);
}

#[test]
fn a_large_response_arrives_complete_alongside_others() {
    let address = serve(ENDLESS);
    let mut large = TcpStream::connect(address).unwrap();
    large.write_all(b"9000000\n").unwrap();
    assert_eq!(ask(address, "7\n"), 7);
    let mut answer = Vec::new();
    large.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 9_000_000);
}

#[test]
fn data_after_the_end_of_a_request_is_ignored() {
    let address = serve(ENDLESS);
    let mut half = TcpStream::connect(address).unwrap();
    half.write_all(b"5").unwrap();
    half.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    half.read_to_end(&mut answer).unwrap();
    assert_eq!(answer.len(), 5, "half closed");
    // Unread data would reset the connection and lose the response.
    assert_eq!(ask(address, &format!("9\n{}", "1\n".repeat(10_000))), 9, "one answer to many requests");
    let mut silent = TcpStream::connect(address).unwrap();
    silent.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap(), 0, "nothing was asked");
}

#[test]
fn a_silent_client_is_disconnected_after_the_timeout() {
    let begun = Instant::now();
    let mut silent = TcpStream::connect(serve(TIMEOUTS)).unwrap();
    assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
    assert!(begun.elapsed() >= TIMEOUTS.asking, "{:?}", begun.elapsed());
}
