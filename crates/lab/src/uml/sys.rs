//! Installs a system-call filter for a kernel that is about to start, and seeds the running kernel's random numbers.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Offset of the system call number. The filter does not check `AUDIT_ARCH`, so it assumes that the kernel has this
/// program's architecture.
const NR: u32 = std::mem::offset_of!(libc::seccomp_data, nr) as u32;

/// Makes getrandom(2) fail in a process, and has the process killed when the thread that starts it ends.
///
/// Without randomness from the machine, a kernel's random numbers depend on its seed.
pub fn without_randomness(command: &mut Command) -> &mut Command {
    let prepare = || {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        refuse_getrandom()
    };
    // SAFETY: between fork and exec the closure makes three system calls and does not allocate.
    unsafe { command.pre_exec(prepare) }
}

fn refuse_getrandom() -> io::Result<()> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut program = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, NR),
        libc::sock_filter {
            code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
            jt: 0,
            jf: 1,
            k: libc::SYS_getrandom as u32,
        },
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the call takes only numbers.
    let silenced = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the filter and the memory that it points to live until the call returns.
    if silenced == 0 && unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) } == 0
    {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Seeds the random number generator of the running kernel.
///
/// # Errors
/// If `/dev/urandom` cannot be opened, or the kernel refuses.
pub fn seed_kernel(seed: &[u8; SEED_BYTES]) -> io::Result<()> {
    /// `struct rand_pool_info` of linux/random.h.
    #[repr(C)]
    struct Pool {
        entropy_bits: libc::c_int,
        size_bytes: libc::c_int,
        bytes: [u8; SEED_BYTES],
    }
    let pool =
        Pool { entropy_bits: 8 * SEED_BYTES as libc::c_int, size_bytes: SEED_BYTES as libc::c_int, bytes: *seed };
    let device = std::fs::OpenOptions::new().write(true).open("/dev/urandom")?;
    // SAFETY: RNDADDENTROPY reads a rand_pool_info of the given length, which lives until the call returns.
    let result = unsafe { libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&device), RNDADDENTROPY, &raw const pool) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Number of bytes of a seed, above the 256 bits after which the kernel counts as seeded.
pub const SEED_BYTES: usize = 64;

/// `_IOW('R', 0x03, int [2])` of linux/random.h.
const RNDADDENTROPY: libc::c_ulong = 0x4008_5203;
