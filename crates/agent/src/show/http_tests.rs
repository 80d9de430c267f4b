use super::*;
use crate::show::fixture;
use std::io::{Read, Write};
use std::net::TcpStream;
use thalweg_store::Exit;

fn start() -> Server {
    Server::start("127.0.0.1:0", Arc::new(Metrics::new()), Arc::new(fixture::agent())).unwrap()
}

fn send(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn metrics_are_served_in_the_prometheus_text_format() {
    let answer = send(&start(), "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
    assert!(body.contains("\nthalweg_connections_open 79\n"), "{body}");
}

#[test]
fn invalid_requests_get_an_http_error_status() {
    let server = start();
    assert!(send(&server, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(send(&server, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(send(&server, "EHLO there \u{1}\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let endless = format!("GET /{}", "a".repeat(3 * MAX_REQUEST_BYTES));
    assert!(send(&server, &endless).starts_with("HTTP/1.1 400 "));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1));
    assert!(send(&server, &many).starts_with("HTTP/1.1 400 "));
}

#[test]
fn a_client_that_sends_no_request_does_not_block_others() {
    let server = start();
    let silent = TcpStream::connect(server.address()).unwrap();
    assert!(send(&server, "GET /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 200 "));
    drop(silent);
}

#[test]
fn non_loopback_addresses_are_rejected() {
    for listen in ["0.0.0.0:9477", "192.0.2.7:9477", "[::]:9477", "[2001:db8::1]:80", "[::ffff:192.0.2.7]:80"] {
        let problem = address(listen).unwrap_err();
        assert_eq!((problem.exit, problem.code), (Exit::Refused, "listen-not-loopback"), "{listen}");
        assert!(problem.hint.contains("--listen 127.0.0.1:9477"), "{problem}");
    }
    for listen in ["127.0.0.1:9477", "127.9.9.9:1", "[::1]:9477", "[::ffff:127.0.0.1]:80"] {
        assert!(address(listen).is_ok(), "{listen}");
    }
    for listen in ["", "9477", "localhost:9477", "127.0.0.1", "127.0.0.1:99999"] {
        assert_eq!(address(listen).unwrap_err().code, "listen", "{listen}");
    }
}

#[test]
fn a_port_in_use_is_reported_with_the_command_to_find_its_owner() {
    let server = start();
    let listen = server.address().to_string();
    let problem = Server::start(&listen, Arc::new(Metrics::new()), Arc::new(fixture::agent())).unwrap_err();
    assert_eq!((problem.exit, problem.code), (Exit::Failed, "listen"));
    assert!(problem.hint.contains(&format!("sport = :{}", server.address().port())), "{problem}");
}
