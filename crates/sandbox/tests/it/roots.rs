//! Roots stay the folders that they were when the thread named them.

use std::fs;
use std::os::unix::fs::symlink;

use codex_sandbox::{Confinement, Launch, Profile, ResolvedRoots, SandboxContext, SpawnError};
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};

use crate::support::{World, has_namespaces, run, workspace_write};

/// A thread: it keeps its roots from one command to the next.
struct Thread {
    world: World,
    policy: SandboxPolicy,
    roots: ResolvedRoots,
}

impl Thread {
    fn new(policy: SandboxPolicy) -> Self {
        Self { world: World::new(), policy, roots: ResolvedRoots::default() }
    }

    fn profile(&self) -> Profile {
        let sandbox_context = SandboxContext { roots: self.roots.clone(), ..self.world.sandbox_context() };
        Profile::new(&self.policy, &self.world.ws(""), &sandbox_context).expect("the policy confines")
    }

    /// Runs a script; it starts in `/`, whatever happens to the workspace.
    fn shell(&self, script: &str) -> Result<String, SpawnError> {
        let launch = self.world.launch(&self.policy, &["/bin/sh", "-c", script]);
        let confinement = Confinement::from(Some(self.profile()));
        Ok(run(Launch { confinement, cwd: "/".into(), ..launch })?.aggregated.text())
    }
}

fn with_roots(roots: &[std::path::PathBuf]) -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite(WorkspaceWrite { writable_roots: roots.to_vec(), ..WorkspaceWrite::default() })
}

/// Such a root was a stale file handle, because every sandbox has a `/dev` of its own.
#[test]
fn a_folder_of_shared_memory_can_be_a_root() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("a folder in shared memory");
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).expect("mkdir");
    for root in [deep.as_path(), std::path::Path::new("/dev/shm")] {
        let thread = Thread::new(with_roots(&[root.to_owned()]));
        let told = thread.shell(&format!("echo x > {}/new && echo done", deep.display())).expect("it starts");
        assert_eq!(told, "done\n", "{}", root.display());
        assert_eq!(fs::read_to_string(deep.join("new")).expect("it is there"), "x\n");
        fs::remove_file(deep.join("new")).expect("unlink");
    }
    let thread = Thread::new(workspace_write());
    let told =
        thread.shell(&format!("ls {}; echo x > /dev/shm/private && echo done", deep.display())).expect("it starts");
    assert!(!has_namespaces() || told.contains("done\n"), "{told}");
}

#[test]
fn a_workspace_that_became_a_link_is_refused() {
    let thread = Thread::new(workspace_write());
    thread.shell("true").expect("it starts");
    fs::rename(thread.world.ws(""), thread.world.path("ws.old")).expect("rename");
    symlink(thread.world.path("outside"), thread.world.ws("")).expect("symlink");
    let refused = thread.shell("echo x > outside/pwned").expect_err("the root has moved");
    assert!(matches!(&refused, SpawnError::Moved { path } if *path == thread.world.ws("")), "{refused}");
    assert!(refused.hint().is_some());
    fs::remove_file(thread.world.ws("")).expect("unlink");
    fs::rename(thread.world.path("ws.old"), thread.world.ws("")).expect("rename");
    thread.shell("true").expect("the folder is back");
}

#[test]
fn a_workspace_below_a_link_is_refused_and_so_is_another_folder_of_its_name() {
    let thread = Thread::new(with_roots(&["a/root".into()]));
    fs::create_dir_all(thread.world.ws("a/root")).expect("mkdir");
    thread.shell("true").expect("it starts");
    fs::rename(thread.world.ws("a"), thread.world.ws("b")).expect("rename");
    fs::create_dir(thread.world.path("outside/root")).expect("mkdir");
    symlink(thread.world.path("outside"), thread.world.ws("a")).expect("symlink");
    assert!(matches!(thread.shell("true"), Err(SpawnError::Moved { .. })));
    fs::remove_file(thread.world.ws("a")).expect("unlink");
    fs::create_dir_all(thread.world.ws("a/root")).expect("mkdir");
    assert!(matches!(thread.shell("true"), Err(SpawnError::Moved { .. })));
}

#[test]
fn a_root_that_was_missing_stays_out() {
    let thread = Thread::new(with_roots(&["cache".into()]));
    assert_eq!(thread.profile().writable_roots().iter().filter(|root| root.ends_with("cache")).count(), 0);
    symlink(thread.world.path("outside"), thread.world.ws("cache")).expect("symlink");
    thread.shell(&format!("echo x > {}/pwned", thread.world.ws("cache").display())).expect("it starts");
    assert!(!thread.world.path("outside/pwned").exists());
    assert!(!thread.profile().writable_roots().contains(&thread.world.path("outside")));
}

#[test]
fn a_temporary_folder_that_was_moved_is_left_out() {
    let thread = Thread::new(workspace_write());
    assert!(thread.profile().writable_roots().contains(&thread.world.path("tmpdir")));
    fs::remove_dir(thread.world.path("tmpdir")).expect("rmdir");
    symlink(thread.world.path("outside"), thread.world.path("tmpdir")).expect("symlink");
    thread.shell(&format!("echo x > {}/pwned", thread.world.path("tmpdir").display())).expect("it starts");
    assert!(!thread.world.path("outside/pwned").exists());
}

#[test]
fn folders_around_a_nested_root_cannot_be_renamed_from_inside() {
    if !has_namespaces() {
        return;
    }
    let thread = Thread::new(with_roots(&["build/deep/cache".into()]));
    fs::create_dir_all(thread.world.ws("build/deep/cache")).expect("mkdir");
    let ws = thread.world.ws("").display().to_string();
    let said =
        thread.shell(&format!("cd {ws}; mv build other; mv build/deep build/other; echo x > build/deep/cache/new"));
    assert!(thread.world.ws("build/deep/cache/new").exists(), "{said:?}");
}
