//! Applications, which determine the sizes and times of transfers on their connections.
//!
//! An [`Application`] is a state machine without a clock. The engine wakes it at the requested time, and reports each
//! message that was acknowledged in full or abandoned. Acknowledgements replace responses of a peer: the time from a
//! message's start to the acknowledgement of its last byte equals the time that a client measures from its request to
//! the last byte, shifted by half a round trip.
//!
//! On one connection messages are delivered in the order in which they were sent.

mod message;
mod periodic;
mod rpc;
mod video;
mod web;

pub use message::{Delivery, Item, Message, Wake};

use crate::streams::Stream;
use periodic::Periodic;
use rand_core::SeedableRng;
use rpc::Rpc;
use thalweg_plan::plan::App;
use thalweg_units::Time;
use video::Video;
use web::Web;

/// A running application.
#[derive(Clone, Debug)]
pub enum Application {
    /// Adaptive video.
    Video(Video),
    /// Web pages.
    Web(Web),
    /// A call, or probes.
    Periodic(Periodic),
    /// Remote procedure calls.
    Rpc(Rpc),
}

impl Application {
    /// Creates an application before its first wakeup. `seed` determines all of its random numbers.
    pub fn new(app: &App, seed: u64) -> Application {
        let stream = Stream::seed_from_u64(seed);
        match app {
            App::Video { bitrates_bps, segment_ns, buffer_ns } => {
                Application::Video(Video::new(bitrates_bps.clone(), *segment_ns, *buffer_ns))
            }
            App::Web { .. } => Application::Web(Web::new(app, stream)),
            App::Call { frame_bytes, interval_ns, freeze_ns } => {
                Application::Periodic(Periodic::new(*frame_bytes, *interval_ns, Some(*freeze_ns)))
            }
            App::Probe { size_bytes, interval_ns } => {
                Application::Periodic(Periodic::new(*size_bytes, *interval_ns, None))
            }
            App::Rpc { mean_gap_ns, sizes_bytes, connections } => {
                Application::Rpc(Rpc::new(*mean_gap_ns, sizes_bytes.clone(), *connections, stream))
            }
        }
    }

    /// Returns the messages to send at `now`. The first call starts the application.
    pub fn wake(&mut self, now: Time) -> Wake {
        match self {
            Application::Video(video) => video.wake(now),
            Application::Web(web) => web.wake(now),
            Application::Periodic(periodic) => periodic.wake(now),
            Application::Rpc(rpc) => rpc.wake(now),
        }
    }

    /// Reports that the oldest message in flight on a connection was delivered or abandoned at `now`.
    pub fn end_message(&mut self, connection: u64, now: Time) -> Delivery {
        match self {
            Application::Video(video) => video.delivered(now),
            Application::Web(web) => web.delivered(connection, now),
            Application::Periodic(periodic) => periodic.delivered(now),
            Application::Rpc(_) => Delivery::default(),
        }
    }
}
