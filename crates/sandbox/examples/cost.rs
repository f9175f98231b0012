//! Measures what a launch costs inside a running process: `cost [ROUNDS]`, in the working directory.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use codex_sandbox::{Confinement, Launch, Profile, Stdio, Surroundings, spawn};
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};

fn main() {
    let rounds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(200);
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
    let Ok(cwd) = std::env::current_dir() else { return };
    let plain = (0..rounds).map(|_| {
        let start = Instant::now();
        let _ = std::process::Command::new("/bin/true").status();
        start.elapsed()
    });
    show("plain exec", plain.collect());
    let network = WorkspaceWrite { network_access: true, ..WorkspaceWrite::default() };
    for (name, policy) in [
        ("full access", SandboxPolicy::DangerFullAccess),
        ("read-only", SandboxPolicy::ReadOnly),
        ("workspace-write", SandboxPolicy::WorkspaceWrite(WorkspaceWrite::default())),
        ("with network", SandboxPolicy::WorkspaceWrite(network)),
    ] {
        let confinement = Confinement::from(Profile::new(&policy, &cwd, &Surroundings::default()));
        let times = (0..rounds).map(|_| runtime.block_on(once(&cwd, confinement.clone())));
        show(name, times.collect());
    }
}

async fn once(cwd: &Path, confinement: Confinement) -> Duration {
    let launch = Launch {
        argv: vec!["/bin/true".into()],
        cwd: cwd.to_owned(),
        env: Vec::new(),
        confinement,
        stdio: Stdio::Pipes,
    };
    let start = Instant::now();
    if let Ok(mut running) = spawn(launch) {
        running.wait().await;
    }
    start.elapsed()
}

fn show(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (best, median) =
        (times.first().copied().unwrap_or_default(), times.get(times.len() / 2).copied().unwrap_or_default());
    let _ = writeln!(std::io::stdout(), "{name:16} best {best:>9.3?}  median {median:>9.3?}");
}
