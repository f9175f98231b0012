//! The processes of one command: the supervisor, the first process of the sandbox, and the command itself.
//!
//! The supervisor is a copy of the server that never executes anything. It stays outside the sandbox, watches the command
//! and a pipe that only the server holds the other end of. When the server lets go of it, by intent or by dying, the
//! supervisor ends the whole tree and removes the stand-ins.
//!
//! Invariant: these processes are copies of a program with threads, so they make plain system calls and nothing else: no
//! allocation, no lock, no panic. None of them can be inspected from inside the sandbox, since they carry the server's
//! memory.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's interface is made of such numbers"
)]

use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, kill_process, pidfd_send_signal, setsid, wait,
    waitid,
};

use super::metadata;
use super::plan::{Confined, World};
use super::sys::{self, Side, Strings};
use super::world;
use crate::error::Step;
use crate::launch::Exit;

/// Everything that the processes need.
pub(super) struct Plan<'a> {
    pub(super) confined: Option<Confined>,
    pub(super) candidates: &'a [std::ffi::CString],
    pub(super) arguments: Strings<'a>,
    pub(super) environment: Strings<'a>,
    pub(super) cwd: &'a std::ffi::CStr,
    /// What becomes the standard streams; `None` leaves the server's own.
    pub(super) streams: Option<[RawFd; 3]>,
    pub(super) is_terminal: bool,
    /// Only find out whether all of this works; execute nothing.
    pub(super) is_rehearsal: bool,
    /// Closed by a successful exec; a failure is written to it.
    pub(super) ready: RawFd,
    /// The exit status is written to it.
    pub(super) end: RawFd,
    /// Ends when the server lets go.
    pub(super) life: RawFd,
    /// A pipe, reading end first, through which the supervisor says which places can be mounted.
    pub(super) places: [RawFd; 2],
    /// A pipe, reading end first, through which the first process says that the sandbox stands.
    pub(super) built: [RawFd; 2],
    /// A pipe, reading end first, through which the command says where its filter's listener is.
    pub(super) listener_number: [RawFd; 2],
    /// Every descriptor that is needed at all, in order.
    pub(super) keep: Vec<RawFd>,
    /// Those of them that the supervisor needs no longer once the command runs.
    pub(super) for_command: Vec<RawFd>,
}

/// A step that failed, and which place it was about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failure {
    pub(super) step: Step,
    pub(super) errno: Errno,
    pub(super) place: u32,
}

impl Failure {
    pub(super) const NO_PLACE: u32 = u32::MAX;
    pub(super) const SIZE: usize = 12;

    pub(super) fn of(step: Step) -> impl Fn(Errno) -> Self {
        move |errno| Self { step, errno, place: Self::NO_PLACE }
    }

    pub(super) fn at(step: Step, place: usize) -> impl Fn(Errno) -> Self {
        move |errno| Self { step, errno, place: place as u32 }
    }

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let fields = [self.step as u32, self.errno.raw_os_error().cast_unsigned(), self.place];
        for (slot, field) in bytes.chunks_exact_mut(4).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let mut fields =
            bytes.chunks_exact(4).map(|field| u32::from_le_bytes([field[0], field[1], field[2], field[3]]));
        let step = *Step::ALL.get(fields.next()? as usize)?;
        let errno = Errno::from_raw_os_error(fields.next()?.cast_signed());
        Some(Self { step, errno, place: fields.next()? })
    }
}

/// What the server hears of the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) exit: Exit,
    /// Nothing of the command is left but processes on their way out, so nobody need wait for those.
    pub(super) is_all: bool,
}

impl End {
    pub(super) const SIZE: usize = 8;

    fn to_bytes(self) -> [u8; Self::SIZE] {
        let (kind, value) = match self.exit {
            Exit::Code(code) => (0_u8, code),
            Exit::Signal(signal) => (1, signal),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [kind, u8::from(self.is_all), 0, 0, a, b, c, d]
    }

    pub(super) fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        let [kind, is_all, _, _, a, b, c, d] = bytes;
        let value = i32::from_le_bytes([a, b, c, d]);
        let exit = if kind == 0 { Exit::Code(value) } else { Exit::Signal(value) };
        Self { exit, is_all: is_all != 0 }
    }
}

/// The supervisor. Runs in the process that the server has just cloned, with every signal blocked.
pub(super) fn supervise(plan: &mut Plan<'_>) -> ! {
    sys::reset_signals();
    close_all_but(&plan.keep);
    // Out of reach of signals to the server's process group and of its terminal.
    let _ = setsid();
    let _ = sys::prctl(libc::PR_SET_NAME, c"codex-command".as_ptr() as u64);
    let _ = rustix::process::chdir(c"/");
    let namespaces = plan.confined.as_ref().and_then(|confined| confined.world.as_ref()).map(|world| world.namespaces);
    if namespaces.is_none() {
        // Whatever loses its parent becomes a child of this process, so it can be found.
        let _ = sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    match sys::clone_process(namespaces.unwrap_or(0), libc::SIGCHLD) {
        Ok(Side::Child) if namespaces.is_some() => first_process(plan),
        Ok(Side::Child) => {
            let _ = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
            command(plan)
        }
        Ok(Side::Parent { pidfd, .. }) => {
            close_each(&plan.built);
            place_stand_ins(plan);
            let listener = take_listener(plan, &pidfd);
            watch(plan, &pidfd, listener, namespaces.is_some())
        }
        Err(errno) => {
            let step = if namespaces.is_some() { Step::Namespaces } else { Step::Clone };
            report(plan, Failure::of(step)(errno));
            clean_up(plan)
        }
    }
}

/// Creates the missing names while the first process makes its mounts, then lets that close them.
fn place_stand_ins(plan: &mut Plan<'_>) {
    let mut failed = None;
    let Some(Confined { world: Some(world), stand_ins, .. }) = &mut plan.confined else { return };
    match stand_ins.place(&mut world.mountable) {
        // Fits into the pipe at once, however many there are: a page and more.
        Ok(()) => drop(rustix::io::write(sys::borrow(plan.places[1]), &world.mountable)),
        Err((errno, place)) => failed = Some(Failure::at(Step::StandIn, place)(errno)),
    }
    if let Some(failure) = failed {
        report(plan, failure);
    }
    // The first process gives up when nothing comes.
    close_each(&plan.places);
}

/// Takes over the calls that the command's filter hands to the supervisor, and lets the command go on.
fn take_listener(plan: &Plan<'_>, child: &OwnedFd) -> Option<OwnedFd> {
    close_each(&plan.listener_number[1..]);
    plan.confined.as_ref()?.judged.as_ref()?;
    let mut number = [0; 4];
    // Nothing comes if the command has failed before.
    if rustix::io::read(sys::borrow(plan.listener_number[0]), &mut number) != Ok(number.len()) {
        return None;
    }
    let listener = sys::take_descriptor(child.as_fd(), RawFd::from_le_bytes(number));
    if listener.is_ok() {
        let _ = rustix::io::write(sys::borrow(plan.places[1]), b"1");
    }
    close_each(&plan.places);
    listener.ok()
}

/// Applies the filter, and waits until the supervisor answers what it hands over.
fn hand_over(plan: &Plan<'_>, confined: &Confined) -> Result<(), Errno> {
    if confined.judged.is_none() {
        return sys::seccomp(&confined.filter);
    }
    close_each(&plan.places[1..]);
    // The supervisor of an ordinary user takes the listener only from a process that it may look at. No command may: its
    // own Landlock domain keeps it from looking into another.
    sys::prctl(libc::PR_SET_DUMPABLE, 1)?;
    let listener = sys::seccomp_with_listener(&confined.filter)?;
    rustix::io::write(sys::borrow(plan.listener_number[1]), &listener.to_le_bytes())?;
    let answered = rustix::io::read(sys::borrow(plan.places[0]), &mut [0_u8])?;
    let _ = sys::prctl(libc::PR_SET_DUMPABLE, 0);
    close_each(&[listener]);
    if answered == 1 { Ok(()) } else { Err(Errno::CANCELED) }
}

/// Waits for the end of the command or of the server's interest, whichever comes first.
fn watch(plan: &Plan<'_>, child: &OwnedFd, listener: Option<OwnedFd>, has_first_process: bool) -> ! {
    close_each(&plan.for_command);
    let judged = plan.confined.as_ref().and_then(|confined| confined.judged.as_deref()).unwrap_or_default();
    let mut listener = listener;
    let _ = sys::prctl(libc::PR_SET_DUMPABLE, 0);
    let life = sys::borrow(plan.life);
    let mut wanted = true;
    loop {
        // What is of no interest any more is not asked about.
        let asked = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut watched = [
            asked(child.as_fd()),
            asked(if wanted { life } else { child.as_fd() }),
            asked(listener.as_ref().map_or(child.as_fd(), |listener| listener.as_fd())),
        ];
        if poll(&mut watched, None).is_err() {
            continue;
        }
        let waits = watched[2].revents().contains(PollFlags::IN);
        let [ended, abandoned, is_asked] = watched.map(|it| !it.revents().is_empty());
        if ended {
            break;
        }
        match &listener {
            Some(calls) if waits => metadata::answer(calls.as_fd(), judged),
            // Nobody is left who could ask.
            Some(_) if is_asked => listener = None,
            Some(_) | None => {}
        }
        if abandoned {
            wanted = false;
            let _ = pidfd_send_signal(child, Signal::KILL);
        }
    }
    let status = waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED).ok().flatten();
    let exit = status.as_ref().map_or(Exit::Signal(libc::SIGKILL), exit_of);
    if !has_first_process {
        end_descendants();
        tell(plan, End { exit, is_all: true });
    } else if exit != Exit::Code(0) {
        // The first process says how the command ended and exits with 0, unless it was killed itself.
        tell(plan, End { exit: Exit::Signal(libc::SIGKILL), is_all: false });
    }
    clean_up(plan)
}

fn exit_of(status: &WaitIdStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(libc::SIGKILL)),
    }
}

fn clean_up(plan: &Plan<'_>) -> ! {
    remove_stand_ins(plan);
    sys::exit(0)
}

fn remove_stand_ins(plan: &Plan<'_>) {
    if let Some(confined) = &plan.confined {
        confined.stand_ins.remove();
    }
}

/// Kills children until there are none: the children of a killed one become ours, as this process is their subreaper.
fn end_descendants() {
    const ROUNDS: usize = 100_000;
    for _ in 0..ROUNDS {
        let mut killed = false;
        let mut list = [0_u8; 4096];
        let file = openat(CWD, c"/proc/thread-self/children", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let length = file.and_then(|file| rustix::io::read(&file, &mut list)).unwrap_or(0);
        let mut number = 0_i32;
        for byte in list.iter().take(length) {
            if byte.is_ascii_digit() {
                number = number.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
            } else if let Some(pid) = Pid::from_raw(std::mem::take(&mut number)) {
                killed |= kill_process(pid, Signal::KILL).is_ok();
            }
        }
        // Somebody of another user cannot be killed, so there is no point in waiting for it.
        let options = if killed { WaitOptions::empty() } else { WaitOptions::NOHANG };
        match wait(options) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return,
        }
    }
}

/// Process 1 of the sandbox: makes its mounts, starts the command, and takes everything along when that ends.
///
/// The command starts first and leaves the network, which takes as long as all mounts together, while these are made.
fn first_process(plan: &mut Plan<'_>) -> ! {
    let _ = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    // A signal to the command's process group ends here: nobody inside can signal process 1, and the supervisor is in
    // another group.
    let _ = setsid();
    let command_pid = match start_command(plan) {
        Ok(pid) => pid,
        Err(failure) => {
            report(plan, failure);
            sys::exit(1);
        }
    };
    if let Err(failure) = set_up(plan) {
        report(plan, failure);
        sys::exit(1);
    }
    let _ = rustix::io::write(sys::borrow(plan.built[1]), b"1");
    close_each(&plan.built);
    close_each(&plan.for_command);
    let mut exit = None;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == command_pid => {
                let signal = status.terminating_signal();
                exit = Some(signal.map_or_else(|| Exit::Code(status.exit_status().unwrap_or(0)), Exit::Signal));
                // Everybody but this process.
                sys::kill_all();
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let Some(exit) = exit else { sys::exit(1) };
    // Stand-ins are removed by the supervisor, once this process has gone.
    let is_all = plan.confined.as_ref().is_none_or(|confined| confined.stand_ins.is_empty());
    tell(plan, End { exit, is_all });
    sys::exit(0)
}

fn start_command(plan: &mut Plan<'_>) -> Result<i32, Failure> {
    if let Some(world) = plan.confined.as_ref().and_then(|confined| confined.world.as_ref()) {
        world::map_user(world).map_err(Failure::of(Step::UserMap))?;
    }
    match sys::clone_process(0, libc::SIGCHLD) {
        Ok(Side::Child) => command(plan),
        Ok(Side::Parent { pid, .. }) => Ok(pid),
        Err(errno) => Err(Failure::of(Step::Clone)(errno)),
    }
}

fn set_up(plan: &mut Plan<'_>) -> Result<(), Failure> {
    let Some(confined) = &mut plan.confined else { return Ok(()) };
    let ruleset = confined.ruleset.as_ref().map(AsRawFd::as_raw_fd);
    if let Some(world) = &mut confined.world {
        close_each(&plan.places[1..]);
        let places = (!confined.stand_ins.is_empty()).then_some(plan.places[0]);
        world::build(world, places, ruleset)?;
    }
    give_up_privileges()
}

/// Leaves the network, and waits until the first process has made the mounts.
fn enter_world(plan: &Plan<'_>, world: &World) -> Result<(), Failure> {
    if world.without_network {
        sys::leave_network().map_err(Failure::of(Step::Namespaces))?;
    }
    close_each(&plan.built[1..]);
    // Nothing comes if a mount has failed, which the first process reports.
    match rustix::io::read(sys::borrow(plan.built[0]), &mut [0_u8]) {
        Ok(1) => give_up_privileges(),
        _ => sys::exit(127),
    }
}

fn give_up_privileges() -> Result<(), Failure> {
    // The memory of this process is a copy of the server's: nobody inside may look at it.
    sys::prctl(libc::PR_SET_DUMPABLE, 0)
        .and_then(|()| sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1))
        .and_then(|()| sys::drop_capabilities())
        .map_err(Failure::of(Step::Privileges))
}

/// Becomes the command.
fn command(plan: &mut Plan<'_>) -> ! {
    let failure = match prepare_command(plan) {
        Ok(()) if plan.is_rehearsal => sys::exit(0),
        Ok(()) => execute(plan),
        Err(failure) => failure,
    };
    report(plan, failure);
    sys::exit(127)
}

fn prepare_command(plan: &Plan<'_>) -> Result<(), Failure> {
    if plan.is_terminal {
        // Only who leads a session can have a terminal. Nobody else leads one: a program that wants a session of its
        // own would have to leave its first process behind, and the command would be over before it began.
        let _ = setsid();
    }
    let confined = plan.confined.as_ref();
    match confined.map(|confined| &confined.world) {
        Some(Some(world)) => enter_world(plan, world)?,
        Some(None) => give_up_privileges()?,
        None => {}
    }
    if let Some(streams) = plan.streams {
        if plan.is_terminal {
            sys::set_controlling_terminal(streams[0]).map_err(Failure::of(Step::Terminal))?;
        }
        for (to, from) in (0..).zip(streams) {
            sys::dup_to(from, to).map_err(Failure::of(Step::Streams))?;
        }
    }
    rustix::process::chdir(plan.cwd).map_err(Failure::of(Step::Enter))?;
    sys::close_range(3, u32::MAX, true).map_err(Failure::of(Step::Streams))?;
    if let Some(confined) = confined {
        if let Some(ruleset) = &confined.ruleset {
            sys::landlock_restrict(ruleset.as_fd()).map_err(Failure::of(Step::Landlock))?;
        }
        hand_over(plan, confined).map_err(Failure::of(Step::Filter))?;
    }
    sys::unblock_signals();
    Ok(())
}

/// Tries the candidates in turn, as a shell does. Comes back only if all fail.
fn execute(plan: &mut Plan<'_>) -> Failure {
    let mut worst = Errno::NOENT;
    for candidate in plan.candidates {
        match sys::execute(candidate, &mut plan.arguments, &plan.environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => worst = Errno::ACCESS,
            errno => return Failure::of(Step::Execute)(errno),
        }
    }
    Failure::of(Step::Execute)(worst)
}

fn report(plan: &Plan<'_>, failure: Failure) {
    let _ = rustix::io::write(sys::borrow(plan.ready), &failure.to_bytes());
}

fn tell(plan: &Plan<'_>, end: End) {
    let _ = rustix::io::write(sys::borrow(plan.end), &end.to_bytes());
}

/// Closes every descriptor that is not listed; the list is in order.
fn close_all_but(keep: &[RawFd]) {
    let mut next = 0;
    for fd in keep.iter().map(|fd| fd.unsigned_abs()) {
        if fd > next {
            let _ = sys::close_range(next, fd - 1, false);
        }
        next = fd + 1;
    }
    let _ = sys::close_range(next, u32::MAX, false);
}

fn close_each(descriptors: &[RawFd]) {
    for fd in descriptors.iter().map(|fd| fd.unsigned_abs()) {
        let _ = sys::close_range(fd, fd, false);
    }
}
