//! Everything that the child processes need, computed in advance by the parent.
//!
//! Invariant: nothing is looked up, formatted or allocated after `clone`.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::filter::{self, Needs};
use super::home_overlay::HomeOverlay;
use super::landlock::{self, Opened};
use super::metadata;
use super::placeholder::Placeholders;
use super::shared_namespaces;
use super::stack::Stack;
use super::sys::{Instruction, Strings};
use super::world::Maps;
use crate::error::{SpawnError, Step};
use crate::launch::{Launch, SandboxLevel};
use crate::layout::{Kind, Layout};
use crate::profile::Profile;
use codex_guard::names::GIT_MAIN_CHECKOUT;
use codex_guard::roots::Identity;

/// The search path for a command without `PATH`.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The command in the form that the kernel takes.
pub(super) struct Words {
    /// The possible paths of the program, best first.
    pub(super) candidates: Vec<CString>,
    /// With a spare slot in front, as [`super::sys::execute`] needs it.
    pub(super) arguments: Strings,
    pub(super) environment: Strings,
    pub(super) cwd: CString,
}

impl Words {
    pub(super) fn of(launch: &Launch) -> Result<Self, SpawnError> {
        let program = launch.argv.first().filter(|program| !program.is_empty()).ok_or(SpawnError::Empty)?;
        let mut environment = Vec::with_capacity(launch.env.len());
        for (name, value) in &launch.env {
            let mut line = name.as_bytes().to_vec();
            line.push(b'=');
            line.extend_from_slice(value.as_bytes());
            environment.push(c_string(OsStr::from_bytes(&line), "the environment")?);
        }
        let arguments = launch.argv.iter().map(|word| c_string(word, "the command")).collect::<Result<_, _>>()?;
        Ok(Self {
            candidates: candidates(program, &launch.env)?,
            arguments: Strings::new(arguments, 1),
            environment: Strings::new(environment, 0),
            cwd: c_string(launch.cwd.as_os_str(), "the working directory")?,
        })
    }
}

fn c_string(text: &OsStr, what: &'static str) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::ZeroByte { what })
}

fn candidates(program: &OsString, env: &[(OsString, OsString)]) -> Result<Vec<CString>, SpawnError> {
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![c_string(program, "the command")?]);
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path);
    let in_folder = |folder: &[u8]| {
        let folder = if folder.is_empty() { b"." } else { folder };
        c_string(Path::new(OsStr::from_bytes(folder)).join(program).as_os_str(), "the command")
    };
    path.as_bytes().split(|byte| *byte == b':').map(in_folder).collect()
}

/// The confinement of the command.
pub(super) struct Confined {
    /// The namespaces and mounts, on the first level.
    pub(super) world: Option<NamespacePlan>,
    pub(super) ruleset: Option<OwnedFd>,
    /// The Landlock scope that groups the processes if there is no first one; see [`super::scope`].
    pub(super) scope: Option<OwnedFd>,
    pub(super) filter: Vec<Instruction>,
    /// The paths where modes and times may be changed, if the supervisor handles those calls.
    pub(super) judged: Option<Vec<CString>>,
    /// Whether the supervisor has placeholders to create.
    pub(super) has_placeholders: bool,
    /// The files whose protecting mount is lost when they are replaced; see [`super::replaced`].
    pub(super) protected: Vec<PathBuf>,
}

/// The memory that the processes of a command change. They share it, so each has its own parts.
///
/// Descriptors that a process opens are numbers here: in the process that frees this memory, those numbers belong to
/// other descriptors.
pub(super) struct SupervisorMemory {
    /// Used by the supervisor.
    pub(super) placeholders: Placeholders,
    /// Used by the supervisor, one byte per place: 0 if it cannot exist, so nothing is mounted there.
    pub(super) mountable: Vec<u8>,
    pub(super) first: FirstProcessMemory,
    /// Used by the command.
    pub(super) arguments: Strings,
    /// The stack of the process that joins namespaces for the first one, or enters a scope.
    pub(super) joining_stack: Stack,
    /// The stack of the first process, or of the one that kills the others.
    pub(super) first_stack: Stack,
    /// The stack of the command until it is executed.
    pub(super) command_stack: Stack,
}

/// The memory that the first process of the sandbox changes.
pub(super) struct FirstProcessMemory {
    /// One slot per place, for folders that are opened before everything becomes read-only.
    pub(super) trees: Vec<Option<RawFd>>,
    /// The supervisor's result; see [`SupervisorMemory::mountable`].
    pub(super) mountable: Vec<u8>,
}

impl SupervisorMemory {
    pub(super) fn new(
        arguments: Strings,
        confined: Option<&Confined>,
        placeholders: Placeholders,
    ) -> Result<Self, Errno> {
        let places = confined.and_then(|it| it.world.as_ref()).map_or(0, |world| world.places.len());
        let mountable = vec![1; places];
        let first = FirstProcessMemory { trees: vec![None; places], mountable: mountable.clone() };
        let stack_if = |needed: bool| if needed { Stack::new() } else { Ok(Stack::none()) };
        let is_scoped = confined.is_some_and(|it| it.scope.is_some());
        let footing = confined.and_then(|it| it.world.as_ref()).map(|world| &world.footing);
        Ok(Self {
            placeholders,
            mountable,
            first,
            arguments,
            joining_stack: stack_if(is_scoped || matches!(footing, Some(NamespaceSource::Shared(_))))?,
            first_stack: stack_if(is_scoped || footing.is_some())?,
            command_stack: Stack::new()?,
        })
    }
}

/// The namespaces and their mounts.
pub(super) struct NamespacePlan {
    pub(super) footing: NamespaceSource,
    pub(super) places: Vec<MountPoint>,
    /// The overlay that hides the secrets of the home.
    pub(super) overlay: HomeOverlay,
    /// The root folder itself is writable.
    pub(super) everything_open: bool,
    /// The Landlock rights on the sandbox's own `/dev`.
    pub(super) dev_access: u64,
}

/// One place to mount.
pub(super) struct MountPoint {
    pub(super) path: CString,
    pub(super) kind: Kind,
    /// The identity of the folder, if it is a root.
    pub(super) root: Option<Identity>,
    /// The folders to make for it, outermost first, if it is in `/dev`, which the sandbox has one of its own of.
    pub(super) below_dev: Vec<CString>,
}

/// The user and network namespaces of a sandbox.
pub(super) enum NamespaceSource {
    /// Its own, created with it.
    Own {
        maps: Maps,
        /// The command creates its own network namespace. That takes the longest, so it happens while the mounts are
        /// made.
        without_network: bool,
    },
    /// Shared with other sandboxes, to be joined in this order; see [`shared_namespaces`].
    Shared([Option<BorrowedFd<'static>>; 2]),
}

impl Confined {
    /// Plans for `profile` on `level`, and returns the placeholders to create.
    pub(super) fn plan(
        profile: &Profile,
        layout: Layout,
        level: &SandboxLevel,
    ) -> Result<(Self, Placeholders), SpawnError> {
        match level {
            SandboxLevel::Namespaces { landlock_abi } => Self::in_namespaces(profile, layout, *landlock_abi),
            SandboxLevel::Landlock { abi } => Ok((Self::by_landlock(profile, &layout, *abi)?, Placeholders::default())),
            SandboxLevel::Nothing { why } => Err(SpawnError::CannotConfine { why: why.clone() }),
        }
    }

    fn in_namespaces(profile: &Profile, layout: Layout, abi: u32) -> Result<(Self, Placeholders), SpawnError> {
        let failed = |step| move |errno: Errno| SpawnError::Confine { step, path: None, source: errno.into() };
        let ruleset = if abi == 0 {
            None
        } else {
            let ruleset = landlock::ruleset(abi, profile.network(), &[]).map_err(failed(Step::Rules))?;
            let opened = Opened::roots(profile.roots()).map_err(failed(Step::OpenFolder))?;
            landlock::allow_open(ruleset.as_fd(), &layout, &opened, abi).map_err(failed(Step::Rules))?;
            Some(super::spawn::above_stdio(ruleset).map_err(failed(Step::Rules))?)
        };
        let everything_open = layout.open().any(|path| path == Path::new("/"));
        let mut placeholders = Placeholders::default();
        let protected = protected(&layout);
        let places = mount_places(layout, profile, &mut placeholders)?;
        let with_network = profile.network();
        let footing = match shared_namespaces::get() {
            Some(shared) => NamespaceSource::Shared(shared.descriptors(with_network)),
            None => NamespaceSource::Own { maps: Maps::of_this_process(), without_network: !with_network },
        };
        let world = NamespacePlan {
            footing,
            places,
            overlay: HomeOverlay::over(&profile.secrets()),
            everything_open,
            dev_access: landlock::own_dev_access(abi),
        };
        let filter = filter::program(Needs {
            network: profile.network(),
            shared_with_outside: false,
            metadata_is_judged: false,
        });
        let has_placeholders = !placeholders.is_empty();
        Ok((
            Self { world: Some(world), ruleset, scope: None, filter, judged: None, has_placeholders, protected },
            placeholders,
        ))
    }

    fn by_landlock(profile: &Profile, layout: &Layout, abi: u32) -> Result<Self, SpawnError> {
        let secrets = profile.secrets();
        let opened = Opened::roots(profile.roots()).map_err(|errno| SpawnError::Confine {
            step: Step::OpenFolder,
            path: None,
            source: errno.into(),
        })?;
        let granted = landlock::apart(layout, &secrets, &opened);
        let rules = || -> Result<(OwnedFd, Option<OwnedFd>), Errno> {
            let ruleset = landlock::ruleset(abi, profile.network(), secrets.paths())?;
            landlock::allow_apart(ruleset.as_fd(), &granted, &opened, abi)?;
            let scope = landlock::signal_scope(abi).transpose()?.map(super::spawn::above_stdio).transpose()?;
            Ok((super::spawn::above_stdio(ruleset)?, scope))
        };
        let (ruleset, scope) =
            rules().map_err(|errno| SpawnError::Confine { step: Step::Rules, path: None, source: errno.into() })?;
        let judged = (!granted.is_empty()).then(|| metadata::writable(&granted));
        let filter = filter::program(Needs {
            network: profile.network(),
            shared_with_outside: true,
            metadata_is_judged: judged.is_some(),
        });
        Ok(Self {
            world: None,
            ruleset: Some(ruleset),
            scope,
            filter,
            judged,
            has_placeholders: false,
            protected: Vec::new(),
        })
    }

    /// Whether its processes need not become accessible to others; see [`shared_namespaces`].
    pub(super) fn shares_namespaces(&self) -> bool {
        self.world.as_ref().is_some_and(|world| matches!(world.footing, NamespaceSource::Shared(_)))
    }

    /// The namespaces that are joined.
    pub(super) fn joined(&self) -> impl Iterator<Item = RawFd> {
        let shared = match self.world.as_ref().map(|world| &world.footing) {
            Some(NamespaceSource::Shared(shared)) => *shared,
            Some(NamespaceSource::Own { .. }) | None => [None; 2],
        };
        shared.into_iter().flatten().map(|namespace| namespace.as_raw_fd())
    }
}

/// The closed places that exist. The state of another checkout is closed too, but changes whenever someone works there,
/// and runs nothing.
fn protected(layout: &Layout) -> Vec<PathBuf> {
    let is_state = |path: &Path| path.file_name().is_some_and(|name| GIT_MAIN_CHECKOUT.iter().any(|it| name == *it));
    let closed = layout.places.iter().filter(|place| place.kind == Kind::Closed && place.placeholder.is_none());
    closed.map(|place| place.path.clone()).filter(|path| !is_state(path)).collect()
}

/// Whether a folder is mounted anew for each sandbox, or is the root of everything.
fn is_replaced(path: &Path) -> bool {
    ["/", "/dev"].iter().any(|folder| path == Path::new(folder)) || path.starts_with("/proc")
}

/// The folders between `/dev` and a folder in it, and the folder itself.
fn below_dev(path: &Path) -> Result<Vec<CString>, SpawnError> {
    let below: Vec<&Path> = path.ancestors().take_while(|folder| *folder != Path::new("/dev")).collect();
    let is_below = path.starts_with("/dev");
    below.into_iter().rev().filter(|_| is_below).map(|folder| c_string(folder.as_os_str(), "a root")).collect()
}

/// The places to mount, after recording the placeholders that they need.
fn mount_places(
    layout: Layout,
    profile: &Profile,
    placeholders: &mut Placeholders,
) -> Result<Vec<MountPoint>, SpawnError> {
    let mut places = Vec::with_capacity(layout.places.len());
    for place in layout.places.into_iter().filter(|place| !is_replaced(&place.path)) {
        if let Some(placeholder) = place.placeholder {
            let path = &place.path;
            placeholders.want(path, placeholder, places.len()).map_err(|errno| SpawnError::Confine {
                step: Step::Placeholder,
                path: Some(path.clone()),
                source: errno.into(),
            })?;
        }
        let root = profile.roots().iter().find(|root| root.path == place.path).map(|root| root.identity);
        let path = c_string(place.path.as_os_str(), "a protected path")?;
        places.push(MountPoint { path, kind: place.kind, root, below_dev: below_dev(&place.path)? });
    }
    Ok(places)
}
