//! Starts a command: makes the plan, starts the supervisor, and waits until the program runs or has failed to start.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Resource, Rlimit, getrlimit};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, OutputModes, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::cgroup::{self, Group};
use super::child::{Pipes, Plan};
use super::messages::Failure;
use super::placeholder::Placeholders;
use super::plan::{Confined, SupervisorMemory, Words};
use super::replaced::{self, Lifeline};
use super::running::{Parts, Running};
use super::supervisor::Supervisor;
use super::{levels, shared_namespaces};
use crate::error::{SpawnError, Step};
use crate::inspect::Due;
use crate::launch::{Confinement, Launch, SandboxLevel, Stdio};
use crate::profile::Profile;

/// The number of launch attempts if a place in the plan vanishes between planning and mounting.
const ATTEMPTS: usize = 3;

/// Starts a command and returns once its program runs. Blocks for about as long as a fork and an exec take.
///
/// Needs a tokio runtime, for the pipes. Dropping the result kills all processes of the command.
pub fn spawn(launch: Launch) -> Result<Running, SpawnError> {
    let Confinement::Policy(profile) = &launch.confinement else { return start(&launch, None) };
    profile.check_roots()?;
    // A process that runs a single command need not detect the level first: a failed step runs nothing.
    let mut level = levels::known().unwrap_or_else(levels::hoped_for);
    for _ in 0..ATTEMPTS {
        match start(&launch, Some((profile, &level))) {
            Err(SpawnError::Confine { source, path: Some(_), .. }) if source.raw_os_error() == Some(libc::ENOENT) => {}
            Err(SpawnError::Confine { step: Step::Namespaces, .. }) if shared_namespaces::give_up() => {}
            Err(SpawnError::Confine { .. }) if levels::known().is_none() => level = levels::level().clone(),
            result => return result,
        }
    }
    start(&launch, Some((profile, &level)))
}

/// Goes through every step on `level` in a process that executes nothing.
pub(super) fn rehearse(profile: &Profile, level: &SandboxLevel) -> Result<(), SpawnError> {
    let launch = Launch {
        argv: vec!["true".into()],
        cwd: "/".into(),
        env: Vec::new(),
        confinement: Confinement::None,
        stdio: Stdio::Inherit,
        most_processes: None,
        most_memory: None,
    };
    let words = Words::of(&launch)?;
    let channels = Channels::new(launch.stdio).map_err(start_failed(Step::Descriptors))?;
    let confined = Some(Confined::plan(profile, profile.layout(), level)?);
    launch_supervisor(&launch, words, confined, channels, Start::Rehearsal).map(|parts| parts.supervisor.wait())
}

fn start(launch: &Launch, confine: Option<(&Profile, &SandboxLevel)>) -> Result<Running, SpawnError> {
    let words = Words::of(launch)?;
    let mut channels = Channels::new(launch.stdio).map_err(start_failed(Step::Descriptors))?;
    // If it cannot be enforced, the caller has been told; see `unenforced_memory_limit`.
    let group = launch.most_memory.map(|memory| cgroup::make(memory, launch.most_processes)).transpose();
    channels.group = group.map_err(|source| SpawnError::Start { step: Step::Group, source })?.flatten();
    let (confined, inspection) = match confine {
        Some((profile, level)) => {
            let layout = profile.layout();
            let inspection = Due::new(profile, &layout);
            (Some(Confined::plan(profile, layout, level)?), inspection)
        }
        None => (None, None),
    };
    let parts = launch_supervisor(launch, words, confined, channels, Start::Command(inspection.as_ref()))?;
    Running::new(parts, inspection).map_err(|source| SpawnError::Start { step: Step::Descriptors, source })
}

fn start_failed(step: Step) -> impl Fn(Errno) -> SpawnError {
    move |errno| SpawnError::Start { step, source: errno.into() }
}

/// The pipes between the server and the processes of one command.
struct Channels {
    ready: (OwnedFd, OwnedFd),
    end: (OwnedFd, OwnedFd),
    /// The end that the supervisor watches, and the holder of the other.
    life: (OwnedFd, Arc<Lifeline>),
    /// From the supervisor to the first process of the sandbox: which places can be mounted.
    places: (OwnedFd, OwnedFd),
    /// From the first process of the sandbox to the command: all mounts are made. Without one, from the supervisor to
    /// the process that kills the others.
    built: (OwnedFd, OwnedFd),
    /// From the command to the supervisor: the descriptor number of its filter's listener.
    listener_number: (OwnedFd, OwnedFd),
    streams: Streams,
    /// The cgroup of the command, if its memory is limited.
    group: Option<Group>,
}

/// The standard streams: the command's ends and the server's.
enum Streams {
    Inherited,
    /// The command reads `input`; its other end is present if the server writes to it.
    Pipes {
        input: (OwnedFd, Option<OwnedFd>),
        out: (OwnedFd, OwnedFd),
        err: (OwnedFd, OwnedFd),
    },
    Terminal {
        control: OwnedFd,
        user: OwnedFd,
    },
}

impl Channels {
    fn new(stdio: Stdio) -> Result<Self, Errno> {
        let streams = match stdio {
            Stdio::Inherit => Streams::Inherited,
            Stdio::Pipes => {
                let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                Streams::Pipes { input: (above_stdio(null)?, None), out: pipe()?, err: pipe()? }
            }
            Stdio::PipesWithInput => {
                let (read, write) = pipe()?;
                Streams::Pipes { input: (read, Some(write)), out: pipe()?, err: pipe()? }
            }
            Stdio::Pty { rows, cols, is_verbatim } => {
                let control = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
                unlockpt(&control)?;
                let user = ioctl_tiocgptpeer(&control, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
                tcsetwinsize(&user, Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 })?;
                if is_verbatim {
                    let mut modes = tcgetattr(&user)?;
                    modes.output_modes.remove(OutputModes::OPOST);
                    tcsetattr(&user, OptionalActions::Now, &modes)?;
                }
                Streams::Terminal { control: above_stdio(control)?, user: above_stdio(user)? }
            }
        };
        Ok(Self {
            ready: pipe()?,
            end: pipe()?,
            life: {
                let (watched, hold) = pipe()?;
                (watched, Lifeline::new(hold))
            },
            places: pipe()?,
            built: pipe()?,
            listener_number: pipe()?,
            streams,
            group: None,
        })
    }

    /// The ends that the processes use.
    fn for_processes(&self) -> Pipes {
        let both = |pipe: &(OwnedFd, OwnedFd)| [pipe.0.as_raw_fd(), pipe.1.as_raw_fd()];
        Pipes {
            streams: self.for_command(),
            ready: self.ready.1.as_raw_fd(),
            end: self.end.1.as_raw_fd(),
            life: self.life.0.as_raw_fd(),
            places: both(&self.places),
            built: both(&self.built),
            listener_number: both(&self.listener_number),
        }
    }

    /// Every descriptor that the processes need, sorted, and those that only the command needs.
    fn kept(&self, confined: Option<&Confined>, placeholders: &Placeholders) -> (Vec<RawFd>, Vec<RawFd>) {
        let Pipes { streams, ready, end, life, places, built, listener_number } = self.for_processes();
        let mut for_command: Vec<RawFd> = streams.unwrap_or([0, 1, 2]).to_vec();
        for_command.push(ready);
        for_command.extend(confined.and_then(|it| it.ruleset.as_ref()).map(AsRawFd::as_raw_fd));
        let mut keep = for_command.clone();
        keep.extend([end, life].into_iter().chain(places).chain(built).chain(listener_number));
        keep.extend(confined.and_then(|it| it.scope.as_ref()).map(AsRawFd::as_raw_fd));
        keep.extend(placeholders.descriptors().map(|fd| fd.as_raw_fd()));
        keep.extend(confined.map(Confined::joined).into_iter().flatten());
        if let Some(group) = self.group.as_ref().map(Group::handle) {
            let (for_all, entrance) = group.descriptors();
            keep.extend(for_all.chain([entrance]));
            for_command.push(entrance);
        }
        keep.sort_unstable();
        keep.dedup();
        (keep, for_command)
    }

    /// The standard streams of the command.
    fn for_command(&self) -> Option<[RawFd; 3]> {
        match &self.streams {
            Streams::Inherited => None,
            Streams::Pipes { input, out, err } => Some([input.0.as_raw_fd(), out.1.as_raw_fd(), err.1.as_raw_fd()]),
            Streams::Terminal { user, .. } => Some([user.as_raw_fd(); 3]),
        }
    }
}

/// A pipe, read end first, neither end of which is one of the standard streams.
fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((above_stdio(read)?, above_stdio(write)?))
}

/// Moves a descriptor above the standard streams, in case one of those is closed in this process.
pub(super) fn above_stdio(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { fcntl_dupfd_cloexec(&fd, 3) }
}

/// The process limit that lets a command have `most`: the kernel counts all processes of the user, which are at most
/// all that run now.
fn process_limit(most: u32) -> Rlimit {
    let user = getrlimit(Resource::Nproc);
    let loads = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let there = loads.split(['/', ' ']).nth(4).and_then(|count| count.parse().ok()).unwrap_or(0_u64);
    let limit = u64::from(most).saturating_add(there);
    let lowered = |former: Option<u64>| Some(former.map_or(limit, |former| former.min(limit)));
    Rlimit { current: lowered(user.current), maximum: lowered(user.maximum) }
}

/// The purpose of a start.
#[derive(Clone, Copy)]
enum Start<'a> {
    /// Nothing is executed.
    Rehearsal,
    /// The command runs, and may be inspected when it has ended.
    Command(Option<&'a Due>),
}

/// Starts the supervisor and waits until the program runs or a step has failed.
fn launch_supervisor(
    launch: &Launch,
    words: Words,
    confined: Option<(Confined, Placeholders)>,
    channels: Channels,
    purpose: Start<'_>,
) -> Result<Parts, SpawnError> {
    let (confined, placeholders) = confined.unzip();
    let Words { candidates, arguments, environment, cwd } = words;
    let workings = SupervisorMemory::new(arguments, confined.as_ref(), placeholders.unwrap_or_default())
        .map_err(start_failed(Step::Clone))?;
    let (keep, for_command) = channels.kept(confined.as_ref(), &workings.placeholders);
    let plan = Plan {
        confined,
        candidates,
        environment,
        cwd,
        is_terminal: matches!(channels.streams, Streams::Terminal { .. }),
        is_rehearsal: matches!(purpose, Start::Rehearsal),
        most_processes: launch.most_processes.map(process_limit),
        group: channels.group.as_ref().map(Group::handle),
        pipes: channels.for_processes(),
        keep,
        for_command,
    };
    let protected = plan.confined.as_ref().map(|confined| confined.protected.as_slice()).unwrap_or_default();
    let guarded = match purpose {
        Start::Command(Some(due)) => replaced::guard(protected, due),
        Start::Command(None) | Start::Rehearsal => None,
    };
    let (supervisor, copied) = Supervisor::start(plan, workings).map_err(start_failed(Step::Clone))?;
    let Channels { ready, end, life, places, built, listener_number, streams, group } = channels;
    let memory = group.as_ref().map(Group::memory);
    if let Some(group) = group {
        group.hand_over();
    }
    drop((ready.1, end.1, life.0, places, built, listener_number));
    let (input, out, err, control) = match streams {
        Streams::Inherited => (None, None, None, None),
        Streams::Pipes { input, out, err } => (input.1, Some(out.0), Some(err.0), None),
        Streams::Terminal { control, .. } => (None, None, None, Some(control)),
    };
    if let Some(failure) = read_failure(&ready.0) {
        life.1.let_go();
        let plan = copied.as_ref().map(|memory| &memory.plan).or(supervisor.plan());
        let error = explain_failure(launch, plan.and_then(|plan| plan.confined.as_ref()), failure);
        supervisor.wait();
        return Err(error);
    }
    Ok(Parts { supervisor, life: life.1, guarded, end: end.0, input, out, err, control, memory })
}

/// Waits for the pipe that a successful exec closes. End of file means success.
fn read_failure(ready: &OwnedFd) -> Option<Failure> {
    let mut bytes = [0; Failure::SIZE];
    loop {
        match rustix::io::read(ready.as_fd(), &mut bytes) {
            Err(Errno::INTR) => {}
            Ok(Failure::SIZE) => return Failure::from_bytes(bytes),
            Ok(_) | Err(_) => return None,
        }
    }
}

fn explain_failure(launch: &Launch, confined: Option<&Confined>, failure: Failure) -> SpawnError {
    let source = io::Error::from(failure.errno);
    let program = launch.argv.first().cloned().unwrap_or_default();
    match failure.step {
        Step::Execute if failure.errno == Errno::NOENT => SpawnError::NoSuchProgram { program },
        Step::Execute => SpawnError::Execute { program, source },
        Step::Enter => SpawnError::Cwd { cwd: launch.cwd.clone(), source },
        step @ (Step::Clone | Step::Terminal | Step::Streams | Step::Descriptors | Step::Group) => {
            SpawnError::Start { step, source }
        }
        step => {
            let places = confined.and_then(|it| it.world.as_ref()).map(|world| &world.places);
            let place = places.and_then(|places| places.get(failure.place as usize));
            SpawnError::Confine { step, path: place.map(|place| to_path(&place.path)), source }
        }
    }
}

fn to_path(path: &CStr) -> std::path::PathBuf {
    use std::os::unix::ffi::OsStrExt as _;

    std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).to_owned()
}
