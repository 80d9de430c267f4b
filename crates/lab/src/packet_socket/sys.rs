//! System calls on AF_PACKET sockets: packet(7), Documentation/networking/packet_mmap.rst.
#![allow(unsafe_code)]

use libc::{c_int, c_void, tpacket2_hdr};
use std::io;
use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Length of the offload header (`virtio_net_hdr`) before every frame of a socket with PACKET_VNET_HDR, in bytes.
pub(crate) const OFFLOAD_HEADER: usize = 10;

/// Maximum number of packets per send call: it amortizes the call, but is small enough that the call ends soon.
pub(crate) const BATCH: usize = 32;

/// Returns a new socket that receives nothing before it is bound.
pub(crate) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds to an interface. `protocol` is an Ethernet type; 0 receives nothing.
pub(crate) fn bind(socket: BorrowedFd<'_>, interface: u32, protocol: c_int) -> io::Result<()> {
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (protocol as u16).to_be(),
        sll_ifindex: interface as c_int,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let len = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the address outlives the call and has the given length.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len) }).map(drop)
}

/// Returns the Ethernet address of the interface to which a socket is bound.
pub(crate) fn mac(socket: BorrowedFd<'_>) -> io::Result<[u8; 6]> {
    let mut address = MaybeUninit::<libc::sockaddr_ll>::zeroed();
    let mut len = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: the kernel writes at most `len` bytes, which is the size of the structure.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), address.as_mut_ptr().cast(), &raw mut len) })?;
    // SAFETY: all fields are integers, for which the initial zeros are valid, too.
    let address = unsafe { address.assume_init() };
    Ok(std::array::from_fn(|byte| address.sll_addr[byte]))
}

/// Sets an option of the level SOL_PACKET.
pub(crate) fn set_packet<T>(socket: BorrowedFd<'_>, option: c_int, value: &T) -> io::Result<()> {
    set(socket, libc::SOL_PACKET, option, value)
}

/// Sets an option of the level SOL_SOCKET.
pub(crate) fn set_socket<T>(socket: BorrowedFd<'_>, option: c_int, value: &T) -> io::Result<()> {
    set(socket, libc::SOL_SOCKET, option, value)
}

fn set<T>(socket: BorrowedFd<'_>, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as u32;
    // SAFETY: the kernel reads `len` bytes of the value, and affects only the socket.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, ptr::from_ref(value).cast(), len) }).map(drop)
}

/// Returns the number of packets that a socket dropped since the previous call.
pub(crate) fn dropped(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut stats = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut len = size_of::<libc::tpacket_stats>() as u32;
    let value = (&raw mut stats).cast();
    // SAFETY: the kernel writes at most `len` bytes, which is the size of the structure.
    check(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS, value, &raw mut len)
    })?;
    Ok(u64::from(stats.tp_drops))
}

/// Sends at most [`BATCH`] frames; returns the number of sent frames. An error refers to the first one.
pub(crate) fn send<'a>(socket: BorrowedFd<'_>, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
    let mut vectors = [const { libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 } }; BATCH];
    let mut count = 0;
    for (vector, frame) in vectors.iter_mut().zip(frames) {
        *vector = libc::iovec { iov_base: frame.as_ptr().cast_mut().cast(), iov_len: frame.len() };
        count += 1;
    }
    // SAFETY: all fields are integers and pointers that may be null.
    let mut messages: [libc::mmsghdr; BATCH] = unsafe { MaybeUninit::zeroed().assume_init() };
    for (message, vector) in messages.iter_mut().zip(&mut vectors) {
        message.msg_hdr.msg_iov = vector;
        message.msg_hdr.msg_iovlen = 1;
    }
    // SAFETY: each of the `count` messages has a vector, whose frames live as long as 'a; the kernel only reads them.
    check(unsafe { libc::sendmmsg(socket.as_raw_fd(), messages.as_mut_ptr(), count, 0) }).map(|sent| sent as usize)
}

/// Receive ring, into which the kernel writes frames.
#[derive(Debug)]
pub(crate) struct Ring {
    memory: NonNull<u8>,
    size: RingSize,
    /// Index of the oldest frame that the kernel has filled, or of the next one that it will fill.
    next: usize,
}

// SAFETY: the mapping belongs to the ring alone and is not tied to the thread that created it.
unsafe impl Send for Ring {}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RingSize {
    /// Size of a frame with the kernel's headers in bytes; a multiple of 16.
    pub frame: usize,
    /// Size of a block in bytes, a multiple of the page size. Frames do not cross its end.
    pub block: usize,
    pub blocks: usize,
}

impl RingSize {
    fn frames_per_block(&self) -> usize {
        self.block / self.frame
    }

    fn frames(&self) -> usize {
        self.frames_per_block() * self.blocks
    }

    fn bytes(&self) -> usize {
        self.block * self.blocks
    }
}

pub(crate) struct Frame<'a> {
    /// CLOCK_REALTIME when the interface received or sent the frame.
    pub realtime_ns: u64,
    /// Kind of destination: one of `libc::PACKET_*`.
    pub to: u8,
    /// Whether the frame was truncated.
    pub is_cut: bool,
    /// The offload header, which the kernel has written, followed by the frame.
    pub bytes: &'a [u8],
}

impl Ring {
    /// Creates the ring of a socket that is not yet bound and has PACKET_VNET_HDR.
    pub fn of(socket: BorrowedFd<'_>, size: RingSize) -> io::Result<Ring> {
        let version = libc::tpacket_versions::TPACKET_V2 as c_int;
        set_packet(socket, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req {
            tp_block_size: size.block as u32,
            tp_block_nr: size.blocks as u32,
            tp_frame_size: size.frame as u32,
            tp_frame_nr: size.frames() as u32,
        };
        set_packet(socket, libc::PACKET_RX_RING, &request)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping at an address that the kernel chooses.
        let memory = unsafe { libc::mmap(ptr::null_mut(), size.bytes(), access, flags, socket.as_raw_fd(), 0) };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { memory, size, next: 0 })
    }

    /// Returns the oldest frame that the kernel has filled, if any.
    #[inline]
    pub fn front(&self) -> Option<Frame<'_>> {
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let slot = self.slot();
        // SAFETY: by its status, the frame belongs to this process until it is released, which takes `&mut self`; the
        // kernel wrote the header, all of whose fields are integers, and the slot is aligned to 16 bytes.
        let header = unsafe { slot.cast::<tpacket2_hdr>().as_ref() };
        let address = (size_of::<tpacket2_hdr>()).next_multiple_of(libc::TPACKET_ALIGNMENT);
        // SAFETY: the same; the kernel wrote the address behind the header.
        let address = unsafe { slot.add(address).cast::<libc::sockaddr_ll>().as_ref() };
        let begin = usize::from(header.tp_mac).saturating_sub(OFFLOAD_HEADER);
        let end = usize::from(header.tp_mac) + header.tp_snaplen as usize;
        assert!(end <= self.size.frame, "the kernel wrote beyond a frame");
        // SAFETY: the bytes lie within the slot, as just checked, and were written by the kernel.
        let bytes = unsafe { std::slice::from_raw_parts(slot.add(begin).as_ptr(), end - begin) };
        Some(Frame {
            realtime_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
            to: address.sll_pkttype,
            is_cut: header.tp_snaplen < header.tp_len,
            bytes,
        })
    }

    /// Releases the oldest filled frame to the kernel.
    #[inline]
    pub fn pop(&mut self) {
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.size.frames();
    }

    fn slot(&self) -> NonNull<u8> {
        let per_block = self.size.frames_per_block();
        let offset = self.next / per_block * self.size.block + self.next % per_block * self.size.frame;
        // SAFETY: `next` is less than the number of frames, so the slot lies within the mapping.
        unsafe { self.memory.add(offset) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: the status is the first field of the header and aligned. While the kernel owns the frame, it is only
        // read and written as an atomic.
        unsafe { AtomicU32::from_ptr(self.slot().add(offset_of!(tpacket2_hdr, tp_status)).cast().as_ptr()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to the ring, and frames borrow from `self`.
        unsafe { libc::munmap(self.memory.as_ptr().cast::<c_void>(), self.size.bytes()) };
    }
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
