//! Traffic for the tests of the relay. UDP packets carry their number and send time.
//!
//! ```text
//! relay_traffic receive PORT                     prints number and delay in nanoseconds of each packet
//! relay_traffic echo PORT                        sends each packet back
//! relay_traffic send TO COUNT SIZE GAP_US        sends IP packets of this size
//! relay_traffic ping TO COUNT                    sends one packet at a time, prints its round-trip time in
//!                                                 nanoseconds, or `lost` before it is sent again, up to 3 times
//! relay_traffic sink PORT                        accepts one TCP connection, prints the number of bytes received
//! relay_traffic source TO BYTES                  sends bytes over TCP
//! ```

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use thalweg_lab::clock::monotonic_ns;

/// Number of retransmissions of an unanswered packet.
const TRIES: u32 = 3;

/// Length of the headers of IPv4 and UDP in bytes.
const HEADERS: usize = 28;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive", port] => receive(port.parse()?, false),
        ["echo", port] => receive(port.parse()?, true),
        ["send", to, count, size, gap_us] => send(to, count.parse()?, size.parse()?, gap_us.parse()?),
        ["ping", to, count] => ping(to, count.parse()?),
        ["sink", port] => sink(port.parse()?),
        ["source", to, bytes] => source(to, bytes.parse()?),
        _ => Err("expected: receive, echo, send, ping, sink or source".into()),
    }
}

fn say(text: &str) -> Outcome {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    Ok(out.flush()?)
}

fn receive(port: u16, is_echo: bool) -> Outcome {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port))?;
    // A large buffer, so that packets are not dropped here while this process waits for the CPU.
    rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 8 << 20)?;
    // The parent stops this program by closing its standard input.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    say("ready")?;
    let mut buffer = [0; 2048];
    loop {
        let (len, from) = socket.recv_from(&mut buffer)?;
        let now_ns = monotonic_ns();
        let (number, sent_ns) = read(&buffer[..len]);
        if is_echo {
            socket.send_to(&buffer[..len], from)?;
        } else {
            say(&format!("{number} {}", now_ns - sent_ns))?;
        }
    }
}

fn send(to: &str, count: u64, size: usize, gap_us: u64) -> Outcome {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to)?;
    for number in 0..count {
        socket.send(&write(number, size))?;
        if gap_us > 0 {
            std::thread::sleep(Duration::from_micros(gap_us));
        }
    }
    Ok(())
}

fn ping(to: &str, count: u64) -> Outcome {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect(to)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    let (mut buffer, mut tries, mut number) = ([0; 2048], 0, 0);
    while number < count {
        socket.send(&write(number, 100))?;
        match socket.recv(&mut buffer) {
            Ok(len) => {
                say(&format!("{}", monotonic_ns() - read(&buffer[..len]).1))?;
                (tries, number) = (0, number + 1);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && tries < TRIES => {
                say("lost")?;
                tries += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn write(number: u64, size: usize) -> Vec<u8> {
    let mut payload = vec![0; size - HEADERS];
    payload[..8].copy_from_slice(&number.to_le_bytes());
    payload[8..16].copy_from_slice(&monotonic_ns().to_le_bytes());
    payload
}

fn read(payload: &[u8]) -> (u64, u64) {
    let field = |at: usize| u64::from_le_bytes(payload[at..at + 8].try_into().expect("eight bytes"));
    (field(0), field(8))
}

fn sink(port: u16) -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    say("ready")?;
    let bytes = std::io::copy(&mut listener.accept()?.0, &mut std::io::sink())?;
    say(&bytes.to_string())
}

fn source(to: &str, bytes: u64) -> Outcome {
    let mut stream = TcpStream::connect(to)?;
    std::io::copy(&mut std::io::repeat(7).take(bytes), &mut stream)?;
    Ok(())
}
