//! The system calls that no safe wrapper offers. The only file of the crate with `unsafe`.
//!
//! Every function here does one thing and decides nothing; `child` and `launch` are its callers.

#![expect(
    unsafe_code,
    reason = "raw system calls without a safe wrapper in rustix or nix live here"
)]

use rustix::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::convert::Infallible;
use std::io;

/// Attributes for [`mount_setattr`]: the flags to set and the propagation to choose.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Starts a copy of this process in the namespaces that `flags` names. `None` in the copy, its id
/// in the caller. Refused when this process has several threads, since only one would be copied.
pub(super) fn copy_process(flags: libc::c_int) -> io::Result<Option<rustix::process::Pid>> {
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without CLONE_VM this is fork: the copy gets its own memory, so nothing it does can
    // touch this process. Locks held by other threads are no concern, since `child_entry` runs
    // before any thread exists. The null pointers mean "same stack, no ids stored".
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    let pid = i32::try_from(check(result)?).map_err(io::Error::other)?;
    Ok(rustix::process::Pid::from_raw(pid))
}

/// Bytes of the stack on which a process comes to be a program: several times what that takes.
const START_STACK_BYTES: usize = 512 * 1024;

/// Starts a process that runs `become_program` in this process's own memory, which is neither copied nor
/// written twice, and gives its id. This process sleeps until the new one has become another program or
/// has ended. Source: vfork(2); what is said there of the caller's stack is why it gets one of its own.
pub(super) fn start_sharing<F: FnOnce() -> Infallible>(
    become_program: F,
) -> io::Result<Option<rustix::process::Pid>> {
    extern "C" fn enter<F: FnOnce() -> Infallible>(closure: *mut libc::c_void) -> libc::c_int {
        // SAFETY: the pointer is to the `Option<F>` below, which outlives this process: its owner sleeps
        // until then. Nobody else has a reference to it.
        let closure = unsafe { &mut *closure.cast::<Option<F>>() };
        closure.take().map_or(0, |become_program| match become_program() {})
    }
    let mut stack = vec![0_u128; START_STACK_BYTES / size_of::<u128>()];
    let mut closure = Some(become_program);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: the stack is aligned to 16 bytes, grows down from its end, and outlives the new process, as
    // the closure does. With CLONE_VFORK this thread, the only one, runs again when the new process no
    // longer uses this memory, so nothing is used by two at once. `enter` does not unwind: a panic in
    // an `extern "C"` function aborts, which ends the new process alone.
    let result = unsafe {
        let top = stack.as_mut_ptr_range().end.cast();
        libc::clone(enter::<F>, top, flags, (&raw mut closure).cast())
    };
    let pid = i32::try_from(check(result.into())?).map_err(io::Error::other)?;
    Ok(rustix::process::Pid::from_raw(pid))
}

/// Sets mount attributes on the mount behind `tree`, and on all below it when `recursive`.
pub(super) fn mount_setattr(tree: BorrowedFd<'_>, set: u64, recursive: bool) -> io::Result<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, user_namespace: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a static C string, `attributes` outlives the call and the size given is
    // its own; the kernel reads both and keeps neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    check(result).map(drop)
}

/// Closes every descriptor from `first` on.
pub(super) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: called by `child_entry` before any descriptor above the inherited ones is owned by a
    // Rust value, and by a process that is about to leave by `end_process` and uses or drops no
    // descriptor that it had; so no owner acts on a closed number.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    check(result).map(drop)
}

/// Closes one descriptor that this process only inherited.
pub(super) fn close_number(number: i32) {
    // SAFETY: callers name the standard streams, which no Rust value owns, or a descriptor whose
    // owner belongs to the process this one was copied from and is never used or dropped here,
    // since a copy leaves by `end_process`.
    unsafe { libc::close(number) };
}

/// Marks every descriptor from `first` on as closed at exec.
pub(super) fn close_from_at_exec(first: u32) -> io::Result<()> {
    // SAFETY: sets a flag only; no descriptor is closed and no memory is passed.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    check(result).map(drop)
}

/// Takes ownership of a descriptor that the launcher placed at a fixed number.
pub(super) fn take_inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD reads a flag and touches no memory.
    check(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())?;
    // SAFETY: the number is open (checked above) and each inherited number is taken once, at the
    // start of `child_entry`, before anything else can own it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Puts copies of `descriptors` at the numbers from 0 on, whatever was there.
pub(super) fn place_descriptors(descriptors: &[OwnedFd]) -> io::Result<()> {
    for (number, descriptor) in (0..).zip(descriptors) {
        // SAFETY: called in a copy of a process that has done nothing yet, whose Rust values own no
        // descriptor but those of the caller, all above the numbers that are taken here.
        check(unsafe { libc::dup2(descriptor.as_raw_fd(), number) }.into())?;
    }
    Ok(())
}

/// Gives every signal its default action, but for those that the runtime answers: a broken pipe, and
/// the faults that tell of a full stack.
pub(super) fn default_signals() {
    let kept = [libc::SIGPIPE, libc::SIGSEGV, libc::SIGBUS, libc::SIGKILL, libc::SIGSTOP];
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| !kept.contains(signal)) {
        // SAFETY: the default action runs no code of ours. The numbers that the C library keeps for
        // itself are refused, which changes nothing.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Overwrites the arguments and the environment that this process was started with, where the kernel
/// shows them to others. Source of the fields: proc_pid_stat(5), `arg_start` to `env_end`.
pub(super) fn forget_start() -> io::Result<()> {
    const BEHIND_NAME: usize = 45;
    let unknown = || io::Error::other("the kernel does not tell where the arguments lie");
    let text = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = text.rsplit_once(')').ok_or_else(unknown)?;
    let numbers = fields.split_ascii_whitespace().skip(BEHIND_NAME).take(4);
    let numbers: Vec<usize> =
        numbers.map(str::parse).collect::<Result<_, _>>().map_err(|_number| unknown())?;
    let [arguments, arguments_end, environment, environment_end] =
        <[usize; 4]>::try_from(numbers).map_err(|_fields| unknown())?;
    for (start, end) in [(arguments, arguments_end), (environment, environment_end)] {
        let length = end.checked_sub(start).filter(|_| start > 0).ok_or_else(unknown)?;
        let start = std::ptr::with_exposed_provenance_mut::<u8>(start);
        // SAFETY: the kernel says that the bytes it put on this process's stack lie there, writable,
        // for as long as it lives. The process has one thread. No Rust reference to them exists: the
        // library keeps the addresses of the strings and copies at each reading, and what it reads
        // from now on are empty strings.
        unsafe { start.write_bytes(0, length) };
    }
    Ok(())
}

/// Version of Landlock's interface, or the error that says that there is none.
pub(super) fn landlock_abi() -> io::Result<i32> {
    const VERSION: u32 = 1;
    // SAFETY: with the version flag the kernel takes a null pointer of size zero and reads nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    i32::try_from(check(result)?).map_err(io::Error::other)
}

/// Switches on the loopback device of this network namespace.
pub(super) fn loopback_up() -> io::Result<()> {
    let socket = loopback_socket()?;
    // SAFETY: `ifreq` is plain data for which all zero bytes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, byte) in request.ifr_name.iter_mut().zip(c"lo".to_bytes_with_nul()) {
        *slot = libc::c_char::from_ne_bytes([*byte]);
    }
    let flags = libc::IFF_UP | libc::IFF_RUNNING;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).map_err(io::Error::other)?;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`, which `request` is and which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    check(result.into()).map(drop)
}

/// Lets a write to a broken pipe end this process again, as programs expect.
pub(super) fn default_broken_pipe_signal() -> io::Result<()> {
    use nix::sys::signal::{SigHandler, Signal, signal};
    // SAFETY: the default disposition runs no handler of ours.
    unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) }?;
    Ok(())
}

/// Ends this process at once, without destructors or exit handlers of the copied parent.
pub(super) fn end_process(code: i32) -> ! {
    // SAFETY: `_exit` takes a number, touches no memory and does not return.
    unsafe { libc::_exit(code) }
}

fn loopback_socket() -> io::Result<OwnedFd> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    Ok(socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?)
}

/// Corrections of Landlock that the kernel tells, as bits.
pub(super) fn landlock_errata() -> io::Result<i32> {
    const ERRATA: u32 = 2;
    // SAFETY: with the errata flag the kernel takes a null pointer of size zero and reads nothing.
    let result = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            ERRATA,
        )
    };
    i32::try_from(check(result)?).map_err(io::Error::other)
}

/// Makes one call of the probe table.
pub(super) fn harmless_call(call: &super::probe::Call) -> io::Result<i64> {
    let [a, b, c, d, e, f] = call.arguments;
    // SAFETY: only `probe::calls` makes a `Call`, and its invariant is that no argument is the
    // address of memory: pointers are null or 1, which no process has mapped. So the kernel can
    // neither read nor write memory of this process through them.
    check(unsafe { libc::syscall(call.number, a, b, c, d, e, f) })
}

/// Asks for the own process number by the 32-bit entry of the kernel.
#[cfg(target_arch = "x86_64")]
pub(super) fn foreign_call() -> io::Result<i64> {
    const GETPID: i64 = 20;
    let mut answer = GETPID;
    // SAFETY: `getpid` takes no argument and touches no memory; the 32-bit entry keeps all
    // registers but the one that carries the answer, and r8 to r11, which are given up here.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inout("rax") answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nostack),
        );
    }
    check(answer)
}

/// This architecture has no second entry that a 64-bit program could use.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn foreign_call() -> io::Result<i64> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// Puts a filter over this thread. `no_new_privs` must be set.
pub(super) fn install_filter(program: &mut [libc::sock_filter]) -> io::Result<()> {
    set_filter(program, 0).map(drop)
}

/// As `install_filter`; calls to be attended come out of the descriptor that is returned.
pub(super) fn install_with_listener(program: &mut [libc::sock_filter]) -> io::Result<OwnedFd> {
    // Without the second flag a signal interrupts a call that is being answered, and a program
    // that is signalled often repeats it without end. Older kernels do not know it.
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    let number = set_filter(program, flags | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
        .or_else(|_| set_filter(program, flags))?;
    let number = i32::try_from(number).map_err(io::Error::other)?;
    // SAFETY: the kernel has just opened this number for us, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn set_filter(program: &mut [libc::sock_filter], flags: libc::c_ulong) -> io::Result<i64> {
    const SET_FILTER: libc::c_long = 1;
    let length = libc::c_ushort::try_from(program.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len: length, filter: program.as_mut_ptr() };
    // SAFETY: `sock_fprog` points to as many instructions as it says, since both come from one
    // slice that outlives the call; the kernel copies them and keeps no address.
    check(unsafe { libc::syscall(libc::SYS_seccomp, SET_FILTER, flags, &raw const program) })
}

/// A call that waits for its answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Notification {
    /// Names the call; never used twice.
    pub(super) id: u64,
    /// The thread that makes it.
    pub(super) process: u32,
    /// Which call.
    pub(super) number: i32,
    /// Its arguments.
    pub(super) arguments: [u64; 6],
}

/// Waits for the next attended call.
pub(super) fn receive_notification(listener: BorrowedFd<'_>) -> io::Result<Notification> {
    // SAFETY: the structure is plain numbers, for which all zero bytes are valid; the kernel
    // demands that it is zero.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    let request = libc::SECCOMP_IOCTL_NOTIF_RECV;
    // SAFETY: the request writes one `seccomp_notif`, which `call` is and which outlives the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw mut call) };
    check(result.into())?;
    let libc::seccomp_data { nr, args, .. } = call.data;
    Ok(Notification { id: call.id, process: call.pid, number: nr, arguments: args })
}

/// Ends an attended call with an error number, or with 0 as done.
pub(super) fn answer_notification(listener: BorrowedFd<'_>, id: u64, errno: i32) -> io::Result<()> {
    let answer = libc::seccomp_notif_resp { id, val: 0, error: -errno, flags: 0 };
    let request = libc::SECCOMP_IOCTL_NOTIF_SEND;
    // SAFETY: the request reads one `seccomp_notif_resp`, which `answer` is and which outlives it.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const answer) };
    check(result.into()).map(drop)
}

/// Fails when the call is no longer waiting, so that its process number may be another's.
pub(super) fn notification_is_valid(listener: BorrowedFd<'_>, id: u64) -> io::Result<()> {
    let request = libc::SECCOMP_IOCTL_NOTIF_ID_VALID;
    // SAFETY: the request reads one 64-bit number, which `id` is and which outlives the call.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw const id) };
    check(result.into()).map(drop)
}
