//! The processes of one command: the supervisor, the first process of the sandbox, and the command itself.
//!
//! The server clones the supervisor, which never executes anything. It stays outside the sandbox and watches the
//! command and a pipe whose other end only the server holds. When that end closes, because the server drops it or dies,
//! the supervisor kills the whole process tree and removes the placeholders.
//!
//! The other two share the supervisor's memory, the command until it is executed. Copying it for each would cost more
//! than everything else they do.
//!
//! Invariant: these processes run alongside the threads of a program or are copies of it, so they make plain system
//! calls and nothing else: no allocation, no lock, no panic. All of them read the plan and none changes it; each
//! changes only its own memory ([`SupervisorMemory`]). None of them can be inspected from inside the sandbox, because
//! they carry the server's memory.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the kernel's interface is made of such numbers"
)]

use std::ffi::{CString, c_int};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, WaitOptions, pidfd_send_signal, setrlimit, setsid, wait,
    waitid,
};
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::cgroup::Handle;
use super::deadline;
use super::descriptors::restore_descriptor_limit;
use super::messages::{End, Failure};
use super::metadata;
use super::placeholder::Placeholders;
use super::plan::{Confined, FirstProcessMemory, NamespacePlan, NamespaceSource, SupervisorMemory};
use super::reap::{end_descendants, exit_of, reap};
use super::scope::ScopeKiller;
use super::stack::Stack;
use super::start::{self, Started};
use super::sys::{self, Strings};
use super::world;
use crate::error::Step;
use crate::launch::Exit;

/// Everything that the processes need.
pub(super) struct Plan {
    pub(super) confined: Option<Confined>,
    pub(super) candidates: Vec<CString>,
    pub(super) environment: Strings,
    pub(super) cwd: CString,
    pub(super) is_terminal: bool,
    /// Only checks whether all of this works; executes nothing.
    pub(super) is_rehearsal: bool,
    pub(super) most_processes: Option<Rlimit>,
    /// The cgroup that limits its memory.
    pub(super) group: Option<Handle>,
    pub(super) pipes: Pipes,
    /// All descriptors that are needed, sorted.
    pub(super) keep: Vec<RawFd>,
    /// The descriptors that the supervisor does not need once the command runs.
    pub(super) for_command: Vec<RawFd>,
}

/// The pipes between the processes and the server.
#[derive(Clone, Copy)]
pub(super) struct Pipes {
    /// The standard streams of the command; `None` for the server's own.
    pub(super) streams: Option<[RawFd; 3]>,
    /// Closed by a successful exec; a failure is written to it.
    pub(super) ready: RawFd,
    /// Receives the exit status.
    pub(super) end: RawFd,
    /// Reaches end of file when the server drops its end.
    pub(super) life: RawFd,
    /// A pipe, read end first, through which the supervisor reports which places can be mounted.
    pub(super) places: [RawFd; 2],
    /// A pipe, read end first, through which the first process reports that the sandbox is ready.
    pub(super) built: [RawFd; 2],
    /// A pipe, read end first, through which the command reports its filter's listener.
    pub(super) listener_number: [RawFd; 2],
}

/// The supervisor. Runs in the process that the server has just cloned, with every signal blocked. Returns its status.
pub(super) fn supervise(plan: &Plan, workings: &mut SupervisorMemory) -> c_int {
    sys::reset_signals();
    close_all_but(&plan.keep);
    // Detaches from the server's process group, so that its signals and its terminal have no effect.
    let _ = setsid();
    sys::set_name(c"codex-command");
    let _ = rustix::process::chdir(c"/");
    let SupervisorMemory { placeholders, mountable, first, arguments, joining_stack, first_stack, command_stack } =
        workings;
    let mut ender = None;
    let child = if let Some(Confined { world: Some(world), .. }) = &plan.confined {
        let run = move || first_process(plan, world, first, move || start_command(plan, arguments, command_stack, 0));
        start::first_process(&world.footing, run, first_stack, joining_stack).map_err(Failure::of(Step::Namespaces))
    } else {
        // Orphaned descendants become children of this process, so it can find them.
        let _ = sys::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
        let mut start = move |flags| start_command(plan, arguments, command_stack, flags);
        match plan.confined.as_ref().and_then(|confined| confined.scope.as_ref()) {
            Some(scope) => start::in_scope(plan, scope, start, first_stack, joining_stack).map(|(child, its_ender)| {
                ender = Some(its_ender);
                child
            }),
            None => start(0),
        }
    };
    match child {
        Ok((pid, pidfd)) => {
            close_each(&plan.pipes.built[..if ender.is_some() { 1 } else { 2 }]);
            place_placeholders(plan, placeholders, mountable);
            let listener = take_listener(plan, &pidfd);
            watch(plan, placeholders, (pid, &pidfd), listener, ender);
        }
        Err(failure) => report(plan, failure),
    }
    if let Some(group) = &plan.group {
        group.remove();
    }
    0
}

/// Starts the process that becomes the command.
fn start_command(plan: &Plan, arguments: &mut Strings, stack: &mut Stack, flags: c_int) -> Started {
    // SAFETY: this process, and with it the plan, stays alive as long as the other shares its memory; nobody else uses
    // the arguments and the stack.
    unsafe { sys::clone_sharing(stack, flags | libc::SIGCHLD, move || command(plan, arguments)) }
        .map_err(Failure::of(Step::Clone))
}

/// Creates the missing names while the first process makes its mounts, then tells it which ones to close.
fn place_placeholders(plan: &Plan, placeholders: &mut Placeholders, mountable: &mut [u8]) {
    if plan.confined.as_ref().is_none_or(|confined| confined.world.is_none()) {
        return;
    }
    match placeholders.place(mountable) {
        // Fits into the pipe at once: a pipe holds at least a page.
        Ok(()) => drop(sys::write(plan.pipes.places[1], mountable)),
        Err((errno, place)) => report(plan, Failure::at(Step::Placeholder, place)(errno)),
    }
    // The first process gives up when nothing arrives.
    close_each(&plan.pipes.places);
}

/// Takes the listener of the command's filter, and lets the command continue.
fn take_listener(plan: &Plan, child: &OwnedFd) -> Option<OwnedFd> {
    close_each(&plan.pipes.listener_number[1..]);
    plan.confined.as_ref()?.judged.as_ref()?;
    let mut number = [0; 4];
    // Nothing arrives if the command has failed before.
    if sys::read(plan.pipes.listener_number[0], &mut number) != Ok(number.len()) {
        return None;
    }
    let listener = sys::take_descriptor(child.as_fd(), RawFd::from_le_bytes(number));
    if listener.is_ok() {
        let _ = sys::write(plan.pipes.places[1], b"1");
    }
    close_each(&plan.pipes.places);
    listener.ok()
}

/// Applies the filter, and waits until the supervisor has its listener.
fn hand_over(plan: &Plan, confined: &Confined) -> Result<(), Errno> {
    if confined.judged.is_none() {
        return sys::seccomp(&confined.filter);
    }
    close_each(&plan.pipes.places[1..]);
    // The supervisor of an ordinary user can take the listener only from a process that it may inspect. Their shared
    // memory is made inaccessible only after this.
    let listener = sys::seccomp_with_listener(&confined.filter)?;
    sys::write(plan.pipes.listener_number[1], &listener.to_le_bytes())?;
    let answered = sys::read(plan.pipes.places[0], &mut [0_u8])?;
    close_each(&[listener]);
    if answered == 1 { Ok(()) } else { Err(Errno::CANCELED) }
}

/// Waits until the command ends, the server drops its end, or the deadline of all commands passes, whichever comes first.
fn watch(
    plan: &Plan,
    placeholders: &Placeholders,
    (pid, child): (i32, &OwnedFd),
    listener: Option<OwnedFd>,
    others: Option<ScopeKiller>,
) {
    close_each(&plan.for_command);
    let judged = plan.confined.as_ref().and_then(|confined| confined.judged.as_deref()).unwrap_or_default();
    let has_first_process = plan.confined.as_ref().is_some_and(|confined| confined.world.is_some());
    // Without a first process, orphans become children of this one, and would fill the process table as zombies.
    let orphans = if has_first_process { None } else { sys::ends_of_children().ok() };
    let (mut listener, mut exit) = (listener, None);
    // SAFETY: a descriptor of the plan, which this process keeps until it exits.
    let life = unsafe { BorrowedFd::borrow_raw(plan.pipes.life) };
    let mut wanted = true;
    loop {
        // Descriptors that no longer matter are not polled.
        let asked = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut watched = [
            asked(child.as_fd()),
            asked(if wanted { life } else { child.as_fd() }),
            asked(listener.as_ref().map_or(child.as_fd(), |listener| listener.as_fd())),
            asked(orphans.as_ref().map_or(child.as_fd(), |orphans| orphans.as_fd())),
        ];
        if poll(&mut watched, deadline::left().filter(|_| wanted).as_ref()).is_err() {
            continue;
        }
        let waits = watched[2].revents().contains(PollFlags::IN);
        let [ended, abandoned, is_asked, is_orphaned] = watched.map(|it| !it.revents().is_empty());
        if let Some(orphans) = orphans.as_ref().filter(|_| is_orphaned) {
            exit = exit.or(reap(orphans, pid));
        }
        if ended {
            break;
        }
        match &listener {
            Some(calls) if waits => metadata::answer(calls.as_fd(), judged),
            // No process is left that could make calls.
            Some(_) if is_asked => listener = None,
            Some(_) | None => {}
        }
        if abandoned || (wanted && deadline::has_passed()) {
            wanted = false;
            let _ = pidfd_send_signal(child, Signal::KILL);
        }
    }
    let exit = exit.unwrap_or_else(|| {
        let status = waitid(WaitId::PidFd(child.as_fd()), WaitIdOptions::EXITED).ok().flatten();
        status.as_ref().map_or(Exit::Signal(libc::SIGKILL), exit_of)
    });
    if let Some(others) = others {
        others.end_all();
    }
    if let Some(group) = &plan.group {
        group.end_all();
    }
    finish(plan, placeholders, exit, has_first_process);
}

/// Kills the rest of a command, and reports its outcome.
fn finish(plan: &Plan, placeholders: &Placeholders, exit: Exit, has_first_process: bool) {
    if !has_first_process {
        end_descendants();
        tell(plan, exit, true);
    } else if exit != Exit::Code(0) {
        // The first process reports the command's outcome and exits with 0, unless it was killed itself.
        tell(plan, Exit::Signal(libc::SIGKILL), false);
    }
    if !placeholders.is_empty() {
        placeholders.remove();
        // The outcome was reported before; this reports that nothing needs to wait any longer.
        tell(plan, exit, true);
    }
}

/// Process 1 of the sandbox: makes its mounts, starts the command, and kills everything when it ends. Returns its
/// status.
///
/// The command starts first and leaves the network, which takes as long as all mounts together, while these are made.
fn first_process(
    plan: &Plan,
    world: &NamespacePlan,
    workings: &mut FirstProcessMemory,
    start_command: impl FnOnce() -> Started,
) -> c_int {
    let _ = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    // Signals to the command's process group stop here: nobody inside can signal process 1, and the supervisor is in
    // another group.
    let _ = setsid();
    let started = build_world(plan, world, workings, start_command);
    let command_pid = match started {
        Ok(pid) => pid,
        Err(failure) => {
            report(plan, failure);
            return 1;
        }
    };
    let _ = sys::write(plan.pipes.built[1], b"1");
    close_each(&plan.pipes.built);
    close_each(&plan.for_command);
    let mut exit = None;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() == command_pid => {
                let signal = status.terminating_signal();
                exit = Some(signal.map_or_else(|| Exit::Code(status.exit_status().unwrap_or(0)), Exit::Signal));
                // Every process but this one.
                sys::kill_all();
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let Some(exit) = exit else { return 1 };
    // The supervisor removes placeholders once this process has exited.
    let is_all = plan.confined.as_ref().is_none_or(|confined| !confined.has_placeholders);
    tell(plan, exit, is_all);
    0
}

/// Starts the command and makes the mounts concurrently.
fn build_world(
    plan: &Plan,
    world: &NamespacePlan,
    workings: &mut FirstProcessMemory,
    start_command: impl FnOnce() -> Started,
) -> Result<i32, Failure> {
    // It leaves the network, which takes the longest and does not need the user mapping yet.
    let (pid, _) = start_command()?;
    if let NamespaceSource::Own { maps, without_network } = &world.footing {
        if *without_network {
            start_elsewhere(pid);
        }
        maps.apply().map_err(Failure::of(Step::UserMap))?;
    }
    close_each(&plan.pipes.places[1..]);
    let (ruleset, has_placeholders) = match &plan.confined {
        Some(confined) => (confined.ruleset.as_ref().map(AsFd::as_fd), confined.has_placeholders),
        None => (None, false),
    };
    world::build(world, workings, has_placeholders.then_some(plan.pipes.places[0]), ruleset)?;
    // This process has the memory of the supervisor, a copy of the server's: nobody inside may read it.
    sys::set_visible(false)
        .and_then(|()| sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1))
        .and_then(|()| sys::use_no_capabilities())
        .map_err(Failure::of(Step::Privileges))?;
    Ok(pid)
}

/// Makes a new process start at once on another CPU: the kernel often keeps a child on its parent's CPU, and this
/// parent has many mounts to make.
fn start_elsewhere(pid: i32) {
    let Ok(all) = sched_getaffinity(None) else { return };
    let mut others = all;
    others.unset(sched_getcpu());
    if others.count() > 0 {
        let pid = Pid::from_raw(pid);
        let _ = sched_setaffinity(pid, &others);
        // After that it may run anywhere.
        let _ = sched_setaffinity(pid, &all);
    }
}

/// Leaves the network, drops all privileges and applies the filter, then waits until the first process has made the
/// mounts.
fn enter_world(plan: &Plan, confined: &Confined, world: &NamespacePlan) -> Result<(), Failure> {
    if let NamespaceSource::Own { without_network: true, .. } = world.footing {
        sys::leave_network().map_err(Failure::of(Step::Namespaces))?;
    }
    give_up_privileges()?;
    sys::seccomp(&confined.filter).map_err(Failure::of(Step::Filter))?;
    close_each(&plan.pipes.built[1..]);
    // Nothing arrives if a mount has failed, which the first process reports.
    match sys::read(plan.pipes.built[0], &mut [0_u8]) {
        Ok(1) => Ok(()),
        _ => sys::exit(127),
    }
}

fn give_up_privileges() -> Result<(), Failure> {
    sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
        .and_then(|()| sys::drop_capabilities())
        .map_err(Failure::of(Step::Privileges))
}

/// Becomes the command. Returns only on failure, with the exit status.
fn command(plan: &Plan, arguments: &mut Strings) -> c_int {
    let failure = match prepare_command(plan) {
        Ok(()) if plan.is_rehearsal => return 0,
        Ok(()) => execute(plan, arguments),
        Err(failure) => failure,
    };
    report(plan, failure);
    127
}

fn prepare_command(plan: &Plan) -> Result<(), Failure> {
    // Its parent is the first process, or the supervisor if there is none.
    let _ = sys::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as u64);
    if let Some(limit) = plan.most_processes {
        setrlimit(Resource::Nproc, limit).map_err(Failure::of(Step::Privileges))?;
    }
    if let Some(group) = &plan.group {
        group.enter().map_err(Failure::of(Step::Group))?;
    }
    restore_descriptor_limit();
    if plan.is_terminal {
        // Only a session leader can have a controlling terminal. Otherwise the command leads no session: a program that
        // needs its own would have to fork and leave its first process, and the command would be over before it began.
        let _ = setsid();
    }
    let confined = plan.confined.as_ref();
    match confined {
        Some(confined @ Confined { world: Some(world), .. }) => enter_world(plan, confined, world)?,
        Some(Confined { world: None, .. }) => give_up_privileges()?,
        None => {}
    }
    if let Some(streams) = plan.pipes.streams {
        if plan.is_terminal {
            sys::set_controlling_terminal(streams[0]).map_err(Failure::of(Step::Terminal))?;
        }
        for (to, from) in (0..).zip(streams) {
            sys::dup_to(from, to).map_err(Failure::of(Step::Streams))?;
        }
    }
    rustix::process::chdir(plan.cwd.as_c_str()).map_err(Failure::of(Step::Enter))?;
    sys::close_range(3, u32::MAX, true).map_err(Failure::of(Step::Streams))?;
    if let Some(confined) = confined {
        if let Some(ruleset) = &confined.ruleset {
            sys::landlock_restrict(ruleset.as_fd()).map_err(Failure::of(Step::Landlock))?;
        }
        if confined.world.is_none() {
            hand_over(plan, confined).map_err(Failure::of(Step::Filter))?;
        }
        sys::set_visible(false).map_err(Failure::of(Step::Privileges))?;
    }
    sys::unblock_signals();
    Ok(())
}

/// Tries the candidates in turn, as a shell does. Returns only if all fail.
fn execute(plan: &Plan, arguments: &mut Strings) -> Failure {
    let mut worst = Errno::NOENT;
    for candidate in &plan.candidates {
        match sys::execute(candidate, arguments, &plan.environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            Errno::ACCESS => worst = Errno::ACCESS,
            errno => return Failure::of(Step::Execute)(errno),
        }
    }
    Failure::of(Step::Execute)(worst)
}

fn report(plan: &Plan, failure: Failure) {
    let _ = sys::write(plan.pipes.ready, &failure.to_bytes());
}

fn tell(plan: &Plan, exit: Exit, is_all: bool) {
    let is_out_of_memory = plan.group.as_ref().is_some_and(Handle::is_out_of_memory);
    let end = End { exit, is_all, is_out_of_memory };
    let _ = sys::write(plan.pipes.end, &end.to_bytes());
}

/// Closes every descriptor that is not listed; the list is sorted.
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

pub(super) fn close_each(descriptors: &[RawFd]) {
    for fd in descriptors.iter().map(|fd| fd.unsigned_abs()) {
        let _ = sys::close_range(fd, fd, false);
    }
}
