use std::fs;

use codex_wire::policy::SandboxPolicy;
use tokio::sync::mpsc;

use super::*;
use crate::launch::{Confinement, Exit, Launch, Stdio};
use crate::profile::{Profile, SandboxContext};
use crate::run::{Limits, run};

const UNIFIED: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
const HYBRID: &str = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                      32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

#[test]
fn the_own_cgroup_is_found_by_its_mount() {
    let found = |cgroups: &str, mounts: &str| place::own_folder(cgroups, mounts).map(|path| path.display().to_string());
    assert_eq!(found("0::/a.slice/b.scope\n", UNIFIED).as_deref(), Ok("/sys/fs/cgroup/a.slice/b.scope"));
    assert_eq!(found("4:memory:/x\n0::/\n", HYBRID).as_deref(), Ok("/sys/fs/cgroup/unified/"));
    let part = UNIFIED.replace(" / /sys", " /a.slice /sys");
    assert_eq!(found("0::/a.slice/b\n", &part).as_deref(), Ok("/sys/fs/cgroup/b"));
    for (cgroups, mounts) in
        [("4:memory:/x\n", HYBRID), ("0::/b\n", part.as_str()), ("0::/../b\n", UNIFIED), ("0::/b\n", "")]
    {
        assert!(found(cgroups, mounts).is_err(), "{cgroups} {mounts}");
    }
}

/// Folders and files as in a real cgroup hierarchy, except for those that the kernel creates itself with each cgroup.
const FAKE: Files = Files {
    write: |path, text| {
        if path.ends_with("memory.max") {
            let file = |name: &str, text: &str| fs::write(path.with_file_name(name), text);
            file("cgroup.procs", "")?;
            file("cgroup.kill", "")?;
            file("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n")?;
        }
        let before = place::read(path).unwrap_or_default();
        fs::write(path, format!("{before}{text}\n"))
    },
    remove: |path| fs::remove_dir_all(path),
};

/// A cgroup with these processes and controllers.
fn cgroup(path: &Path, processes: &str, controllers: &str) {
    fs::create_dir_all(path).unwrap();
    fs::write(path.join("cgroup.procs"), processes).unwrap();
    fs::write(path.join("cgroup.controllers"), controllers).unwrap();
}

fn said(path: &Path) -> String {
    place::words(path).join(" ")
}

fn is_unit(path: &Path) -> bool {
    path.ends_with("unit")
}

#[test]
fn a_delegated_cgroup_is_divided_after_this_process_has_made_way() {
    let temp = tempfile::tempdir().unwrap();
    let unit = temp.path().join("unit");
    cgroup(&unit, "77\n", "cpu memory pids\n");
    let base = Base::at(&unit, is_unit, 77, FAKE).map_err(|why| panic!("{why}")).unwrap();
    assert_eq!(said(&unit.join("codex-77/cgroup.procs")), "0");
    assert_eq!(said(&unit.join("cgroup.subtree_control")), "+memory +pids");
    let group = base.make(512 << 20, Some(100)).unwrap();
    let folder = PathBuf::from(std::ffi::OsStr::from_bytes(group.path.to_bytes()));
    assert!(folder.starts_with(&unit));
    let set = ["memory.max", "memory.swap.max", "memory.oom.group", "pids.max"].map(|name| said(&folder.join(name)));
    assert_eq!(set, ["536870912", "0", "1", "100"]);
    let handle = group.handle();
    handle.enter().unwrap();
    handle.end_all();
    assert_eq!(
        (said(&folder.join("cgroup.procs")), said(&folder.join("cgroup.kill"))),
        ("0".to_owned(), "1".to_owned())
    );
    assert!(handle.is_out_of_memory());
    drop(group);
    assert!(!folder.exists(), "one that nobody has entered goes");
    assert_eq!(base.make(1, None).unwrap().memory(), SMALLEST);
}

#[test]
fn a_process_that_was_put_below_the_delegated_cgroup_stays_there() {
    let temp = tempfile::tempdir().unwrap();
    let unit = temp.path().join("unit");
    cgroup(&unit, "", "memory\n");
    cgroup(&unit.join("main"), "77\n78\n", "");
    let base = Base::at(&unit.join("main"), is_unit, 77, FAKE).map_err(|why| panic!("{why}")).unwrap();
    assert_eq!((base.path, base.limits_processes), (unit.clone(), false));
    assert_eq!(said(&unit.join("main/cgroup.procs")), "77 78");
    assert_eq!(said(&unit.join("cgroup.subtree_control")), "+memory");
}

#[test]
fn groups_that_were_not_delegated_are_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let unit = temp.path().join("unit");
    let refused = |own: &Path| Base::at(own, is_unit, 77, FAKE).map(drop).unwrap_err();
    cgroup(&unit.join("deep/own"), "77\n", "memory\n");
    cgroup(&unit, "77\n78\n", "memory\n");
    assert!(refused(&unit.join("deep/own")).ends_with("own is not delegated to this process"));
    assert!(refused(&unit).starts_with("other processes run in the cgroup "));
    cgroup(&unit, "77\n", "cpu pids\n");
    assert!(refused(&unit).ends_with("unit has no memory controller"));
    assert!(!unit.join("codex-77").exists() && !unit.join("cgroup.subtree_control").exists());
    assert!(!place::is_delegated(&unit), "a folder that can be written is not delegated by that");
}

#[test]
fn cgroups_of_processes_that_are_gone_are_removed() {
    let temp = tempfile::tempdir().unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let dead = [format!("codex-{}", gone.id()), format!("codex-{}-4", gone.id())];
    let kept = [format!("codex-{}-0", std::process::id()), "codex-x".to_owned(), "other-1".to_owned()];
    for name in dead.iter().chain(&kept) {
        fs::create_dir(temp.path().join(name)).unwrap();
    }
    sweep(temp.path(), FAKE);
    assert!(dead.iter().all(|name| !temp.path().join(name).exists()));
    assert!(kept.iter().all(|name| temp.path().join(name).exists()));
}

#[test]
fn only_processes_that_were_ended_count_as_out_of_memory() {
    assert!(has_killed(b"low 0\noom 2\noom_kill 1\n"));
    assert!(!has_killed(b"max 40\noom 2\noom_kill 0\noom_group_kill 0\n"));
    assert!(!has_killed(b""));
}

/// The command enters its cgroup itself, in any sandbox, and an out-of-memory kill is reported as such.
#[tokio::test]
async fn a_command_over_the_memory_limit_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let unit = temp.path().join("unit");
    cgroup(&unit, &format!("{}\n", std::process::id()), "memory pids\n");
    let base = Base::at(&unit, is_unit, std::process::id(), FAKE).map_err(|why| panic!("{why}")).unwrap();
    *BASE.lock().unwrap() = Some(base);
    assert_eq!(unenforced_memory_limit(Some(1)), None);
    let profile = Profile::new(&SandboxPolicy::ReadOnly, temp.path(), &SandboxContext::default());
    for confinement in [Confinement::None, Confinement::from(profile)] {
        let launch = Launch {
            argv: ["/bin/sh", "-c", "echo hi"].map(Into::into).to_vec(),
            cwd: "/".into(),
            env: Vec::new(),
            confinement,
            stdio: Stdio::Pipes,
            most_processes: Some(4096),
            most_memory: Some(128 << 20),
        };
        let finished = run(launch, Limits::default(), mpsc::channel(8).0).await.unwrap();
        assert_eq!((finished.exit, finished.stdout.text().as_str()), (Exit::Code(0), "hi\n"));
        let told = "\nThe command was ended: it used more than the 128 MiB of memory that `limits.memory` allows.\n";
        assert_eq!(finished.stderr.text(), told);
    }
    let groups = unit.read_dir().unwrap().flatten().filter(|entry| entry.path().join("memory.max").exists());
    let entered: Vec<String> = groups.map(|entry| said(&entry.path().join("cgroup.procs"))).collect();
    assert_eq!(entered, ["0", "0"], "each has a cgroup of its own");
    *BASE.lock().unwrap() = None;
}
