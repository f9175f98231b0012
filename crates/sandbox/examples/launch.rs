//! Runs one command in the sandbox: `launch [--ro] [--net] [--none] [--explain] -- COMMAND…`
//!
//! The working directory is the workspace. `CODEX_SANDBOX_RUNG=landlock` or `none` forces a lower rung.

use std::io::Write as _;
use std::process::ExitCode;

use codex_sandbox::{
    Confinement, Launch, Profile, Rung, Stdio, Surroundings, explain, force_rung, landlock_rung, rung, spawn,
};
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let options: Vec<_> = words.by_ref().take_while(|word| word != "--").collect();
    let has = |name: &str| options.iter().any(|option| option == name);
    match std::env::var("CODEX_SANDBOX_RUNG").as_deref() {
        Ok("landlock") => force_rung(landlock_rung()),
        Ok("none") => force_rung(Rung::Nothing { why: "asked for".to_owned() }),
        _ => true,
    };
    let policy = if has("--none") {
        SandboxPolicy::DangerFullAccess
    } else if has("--ro") {
        SandboxPolicy::ReadOnly
    } else {
        SandboxPolicy::WorkspaceWrite(WorkspaceWrite { network_access: has("--net"), ..WorkspaceWrite::default() })
    };
    let surroundings = Surroundings {
        codex_home: std::env::var_os("CODEX_HOME").unwrap_or_default().into(),
        tmpdir: std::env::var_os("TMPDIR").map(Into::into),
    };
    let Ok(cwd) = std::env::current_dir() else { return ExitCode::from(125) };
    let profile = Profile::new(&policy, &cwd, &surroundings);
    if let (true, Some(profile)) = (has("--explain"), &profile) {
        let _ = write!(std::io::stdout(), "{}", explain(profile, rung()));
        return ExitCode::SUCCESS;
    }
    let confinement = Confinement::from(profile);
    let launch =
        Launch { argv: words.collect(), cwd, env: std::env::vars_os().collect(), confinement, stdio: Stdio::Inherit };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else {
        return ExitCode::from(125);
    };
    let exit = runtime.block_on(async { Ok::<_, codex_sandbox::SpawnError>(spawn(launch)?.wait().await) });
    match exit {
        Ok(exit) => ExitCode::from(u8::try_from(exit.shell_code()).unwrap_or(u8::MAX)),
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            eprintln!("launch: {error}{cause}");
            ExitCode::from(125)
        }
    }
}
