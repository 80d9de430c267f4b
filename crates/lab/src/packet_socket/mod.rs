//! AF_PACKET sockets and their receive rings, which the relay and the meter share.

mod sys;

pub(crate) use sys::{
    BATCH, Frame, OFFLOAD_HEADER, Ring, RingSize, bind, dropped, mac, send, set_packet, set_socket, socket,
};
