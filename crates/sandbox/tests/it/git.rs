//! Git works inside, and files that git executes cannot be planted.

use std::path::Path;

use codex_sandbox::Exit;

use crate::support::{World, entries, git, has_namespaces, runtime, workspace_write};

const IDENTITY: &str = "export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@x; set -e; ";

/// A day's work: add, commit, branch, checkout, merge, stash, delete a branch.
const A_DAY: &str = "echo one > a; git add a; git commit -qm one; git checkout -qb topic; echo two > b; git add b; \
    git commit -qm two; git checkout -q -; echo three > c; git add -A; git commit -qm three; git merge -q --no-edit topic; \
    git branch -d topic >/dev/null; echo four >> a; git stash -q; git stash pop -q; git reset -q --hard; git log --format=%s | sort | tr '\\n' ' '";

#[track_caller]
fn works(world: &World, script: &str) -> String {
    let finished = world.shell(&workspace_write(), &format!("{IDENTITY}{script}"));
    let (out, err) = (finished.stdout.text(), finished.stderr.text());
    assert_eq!(finished.exit, Exit::Code(0), "{script}\n{out}\n{err}");
    out
}

#[track_caller]
fn fails(world: &World, script: &str) {
    let finished = world.shell(&workspace_write(), script);
    assert_ne!(finished.exit, Exit::Code(0), "{script}\n{}", finished.aggregated.text());
}

#[test]
fn a_days_work_in_the_main_checkout() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    git(&world.ws(""), &["init", "-q"]);
    git(&world.ws(""), &["commit", "-q", "--allow-empty", "-m", "start"]);
    let before = entries(&world.ws(".git"));
    assert_eq!(works(&world, A_DAY), "Merge branch 'topic' one start three two ");
    assert_eq!(git(&world.ws(""), &["status", "--short"]), "");
    assert_eq!(git(&world.ws(""), &["ls-files"]), "a\nb\nc\n", "placeholders were committed");
    for kept in before {
        assert!(world.ws(".git").join(&kept).exists(), "{kept}");
    }
    for gone in ["commondir", "config.worktree", "modules", "info/attributes"] {
        assert!(!world.ws(".git").join(gone).exists(), "{gone}");
    }
    for attack in [
        "echo x > .git/hooks/pre-commit",
        "git config core.fsmonitor ./x",
        "echo . > .git/commondir",
        "mkdir .git/modules/x",
        "echo '* filter=x' > .git/info/attributes",
        "mv .git/info .git/info2",
        "rm -rf .git/hooks",
        "ln -sfn /tmp .git/hooks",
    ] {
        fails(&world, attack);
    }
}

#[test]
fn a_days_work_in_a_linked_worktree() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    let main = world.path("outside/main");
    std::fs::create_dir(&main).expect("mkdir");
    git(&main, &["init", "-q"]);
    git(&main, &["commit", "-q", "--allow-empty", "-m", "start"]);
    std::fs::remove_dir(world.ws("")).expect("rmdir");
    git(&main, &["worktree", "add", "-q", "-b", "work", &world.ws("").display().to_string()]);
    git(&main, &["worktree", "add", "-q", "-b", "other", &world.path("outside/other").display().to_string()]);
    assert_eq!(works(&world, A_DAY), "Merge branch 'topic' into work one start three two ");
    let common = main.join(".git");
    let inside = |name: &str| common.join(name).display().to_string();
    for attack in [
        format!("echo x > {}", inside("hooks/post-checkout")),
        format!("echo x >> {}", inside("config")),
        format!("echo x >> {}", inside("HEAD")),
        format!("rm {}", inside("worktrees/ws/commondir")),
        format!("echo /tmp > {}", inside("worktrees/ws/commondir")),
        format!("echo x >> {}", inside("worktrees/other/HEAD")),
        format!("mv {} {}", inside("worktrees/ws"), inside("worktrees/ws2")),
        format!("touch {}", main.join("new").display()),
        "echo 'gitdir: /tmp' > .git".to_owned(),
        "rm .git".to_owned(),
    ] {
        fails(&world, &attack);
    }
    assert_eq!(git(&main, &["status", "--short"]), "");
}

/// The folder of an isolated agent is below `CODEX_HOME`, which is closed around it.
#[test]
fn a_days_work_in_a_worktree_below_the_home() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    git(&world.ws(""), &["init", "-q"]);
    git(&world.ws(""), &["commit", "-q", "--allow-empty", "-m", "start"]);
    let record = world.write("codex_home/worktrees/agent/record.json", "{}");
    let auth = world.write("codex_home/auth.json", "secret");
    let own = world.path("codex_home/worktrees/agent/ws");
    git(&world.ws(""), &["worktree", "add", "-q", "-b", "codex/work", &own.display().to_string()]);
    let run = |script: &str| {
        let mut launch = world.launch(&workspace_write(), &["/bin/sh", "-c", &format!("{IDENTITY}{script}")]);
        let profile = codex_sandbox::Profile::new(&workspace_write(), &own, &world.sandbox_context());
        (launch.cwd, launch.confinement) = (own.clone(), profile.into());
        crate::support::run(launch).expect("it starts")
    };
    let day = run(A_DAY);
    assert_eq!(day.exit, Exit::Code(0), "{}", day.aggregated.text());
    for attack in [
        format!("echo x > {}", record.display()),
        format!("touch {}", record.with_file_name("new").display()),
        format!("cat {}", auth.display()),
        format!("touch {}", world.ws("new").display()),
        format!("echo x > {}", world.ws(".git/hooks/post-checkout").display()),
        format!("echo x >> {}", world.ws(".git/HEAD").display()),
        "echo 'gitdir: /tmp' > .git".to_owned(),
    ] {
        assert_ne!(run(&attack).exit, Exit::Code(0), "{attack}");
    }
    assert_eq!(git(&world.ws(""), &["status", "--short"]), "");
}

#[test]
fn a_submodule_is_committed_from_inside_and_from_its_own_folder() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    let library = world.path("outside/library");
    std::fs::create_dir(&library).expect("mkdir");
    git(&library, &["init", "-q"]);
    git(&library, &["commit", "-q", "--allow-empty", "-m", "start"]);
    git(&world.ws(""), &["init", "-q"]);
    git(&world.ws(""), &["submodule", "--quiet", "add", &library.display().to_string(), "lib"]);
    git(&world.ws(""), &["commit", "-qm", "with lib"]);
    works(&world, "cd lib; echo x > x; git add x; git commit -qm x; cd ..; git add lib; git commit -qm bump");
    fails(&world, "echo x > .git/modules/lib/hooks/pre-commit");
    fails(&world, "echo x >> .git/modules/lib/config");
    fails(&world, "echo 'gitdir: /tmp' > lib/.git");
    // The same submodule as a workspace: its git folder is outside and points back.
    let mut launch = world.launch(&workspace_write(), &["/bin/sh", "-c"]);
    let sandbox_context = world.sandbox_context();
    let profile = codex_sandbox::Profile::new(&workspace_write(), &world.ws("lib"), &sandbox_context);
    launch.argv.push(format!("{IDENTITY} echo y > y; git add y; git commit -qm y; ! echo z > ../z").into());
    (launch.cwd, launch.confinement) = (world.ws("lib"), profile.into());
    let finished = crate::support::run(launch).expect("it starts");
    assert_eq!(finished.exit, Exit::Code(0), "{}", finished.aggregated.text());
}

#[test]
fn a_forged_link_opens_nothing() {
    let world = World::new();
    let victim = world.path("outside/victim");
    std::fs::create_dir(&victim).expect("mkdir");
    git(&victim, &["init", "-q"]);
    git(&victim, &["commit", "-q", "--allow-empty", "-m", "start"]);
    git(&victim, &["worktree", "add", "-q", &world.path("outside/real").display().to_string()]);
    for target in [victim.join(".git"), victim.join(".git/worktrees/real")] {
        world.write("ws/.git", &format!("gitdir: {}\n", target.display()));
        let script = format!("echo x > {0}/pwned; echo x >> {0}/HEAD; rm -f {0}/index; true", target.display());
        let before = entries(&target);
        world.shell(&workspace_write(), &script);
        assert_eq!(entries(&target), before);
    }
    assert_eq!(git(&victim, &["status", "--short"]), "");
}

#[test]
fn configured_hooks_and_included_files_are_closed_too() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    git(&world.ws(""), &["init", "-q"]);
    git(&world.ws(""), &["config", "core.hooksPath", ".husky/_"]);
    git(&world.ws(""), &["config", "include.path", "../team.gitconfig"]);
    world.write("ws/.husky/_/pre-commit", "#!/bin/sh\n");
    world.write("ws/team.gitconfig", "");
    for attack in ["echo x >> .husky/_/pre-commit", "mv .husky h", "echo x >> team.gitconfig", "mv team.gitconfig x"] {
        fails(&world, attack);
    }
    assert!(Path::new(&world.ws(".husky/_/pre-commit")).exists());
}

/// Each of these once killed the command that ran.
#[test]
pub(crate) fn nothing_that_the_user_does_outside_ends_a_command() {
    let world = World::new();
    git(&world.ws(""), &["init", "-q"]);
    git(&world.ws(""), &["commit", "-q", "--allow-empty", "-m", "one"]);
    world.write("ws/.envrc", "one");
    world.write("ws/.vscode/tasks.json", "{}");
    std::fs::create_dir_all(world.path("tmpdir/.codex")).expect("mkdir");
    let findings = codex_sandbox::Findings::default();
    let mut launch = world.launch(&workspace_write(), &["/bin/sh", "-c", "echo ready; read line; echo went on"]);
    launch.stdio = codex_sandbox::Stdio::PipesWithInput;
    launch.confinement = world.profile(&workspace_write()).map(|profile| profile.reporting_to(&findings)).into();
    let save = |name: &str, text: &str| {
        std::fs::write(world.path("new"), text).expect("write");
        std::fs::rename(world.path("new"), world.ws(name)).expect("rename");
    };
    let told = runtime().block_on(async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut running = codex_sandbox::spawn(launch).expect("it starts");
        let mut out = running.take_stdout().expect("a pipe");
        let mut input = running.take_stdin().expect("a pipe");
        let mut told = vec![0; 6];
        out.read_exact(&mut told).await.expect("it is ready");
        for number in 0..5 {
            git(&world.ws(""), &["config", "user.name", &format!("me {number}")]);
            git(&world.ws(""), &["config", "branch.main.remote", "origin"]);
            git(&world.ws(""), &["commit", "-q", "--allow-empty", "-m", "more"]);
        }
        save(".envrc", "two");
        std::fs::create_dir(world.path("folder")).expect("mkdir");
        std::fs::write(world.path("folder/tasks.json"), "mine").expect("write");
        std::fs::rename(world.ws(".vscode"), world.path("old")).expect("rename");
        std::fs::rename(world.path("folder"), world.ws(".vscode")).expect("rename");
        std::fs::remove_dir(world.path("tmpdir/.codex")).expect("rmdir");
        input.write_all(b"go\n").await.expect("it reads");
        drop(input);
        out.read_to_end(&mut told).await.expect("it ends");
        assert_eq!(running.wait().await, Exit::Code(0));
        codex_sandbox::cleanup_done().await;
        String::from_utf8_lossy(&told).into_owned()
    });
    assert_eq!(told, "ready\nwent on\n");
    assert_eq!(std::fs::read_to_string(world.ws(".envrc")).expect("it is kept"), "two");
    assert_eq!(git(&world.ws(""), &["config", "--local", "user.name"]), "me 4\n");
    let report = findings.take();
    let told = |finding: &codex_sandbox::Finding| finding.what.starts_with("replaced by another program");
    // A folder cannot replace another one in a single step, so a command could have made the new one.
    let others = report.findings.iter().filter(|finding| !told(finding) && !finding.path.ends_with(".vscode"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&codex_sandbox::Finding>::new());
}

/// A file that has lost its protection keeps it by its content.
#[test]
fn a_replaced_file_is_accepted_only_with_the_content_that_it_was_given() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    git(&world.ws(""), &["init", "-q"]);
    world.write("ws/.envrc", "");
    for (name, is_left) in [(".git/config", true), (".envrc", false)] {
        let script = format!("echo ready; read line; until echo '[core]\n\tfsmonitor = x' >> {name}; do :; done");
        let findings = codex_sandbox::Findings::default();
        let mut launch = world.launch(&workspace_write(), &["/bin/sh", "-c", &script]);
        launch.stdio = codex_sandbox::Stdio::PipesWithInput;
        launch.confinement = world.profile(&workspace_write()).map(|profile| profile.reporting_to(&findings)).into();
        runtime().block_on(async {
            use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
            let mut running = codex_sandbox::spawn(launch).expect("it starts");
            let (mut out, input) = (running.take_stdout().expect("a pipe"), running.take_stdin());
            out.read_exact(&mut [0; 6]).await.expect("it is ready");
            std::fs::write(world.ws("new"), "[user]\nname = me\n").expect("write");
            std::fs::rename(world.ws("new"), world.ws(name)).expect("rename");
            while !is_left && findings.take_for_model().is_none() {
                tokio::task::yield_now().await;
            }
            input.expect("a pipe").write_all(b"go\n").await.expect("it reads");
            assert_eq!(running.wait().await, Exit::Code(0), "{name}");
            codex_sandbox::cleanup_done().await;
        });
        assert_eq!(world.ws(name).exists(), is_left, "{name}");
    }
    assert_eq!(git(&world.ws(""), &["config", "--list", "--local"]), "user.name=me\n");
}

/// Empty folders with nine names once stood in the workspace as long as a command ran.
#[test]
fn nobody_sees_that_a_command_runs() {
    crate::settle_level();
    let world = World::new();
    world.write("ws/a", "");
    runtime().block_on(async {
        let mut running =
            codex_sandbox::spawn(world.launch(&workspace_write(), &["/bin/sleep", "60"])).expect("it starts");
        assert_eq!(crate::support::entries(&world.ws("")), ["a"]);
        assert_eq!(crate::support::entries(&world.path("tmpdir")), [""; 0]);
        running.kill();
        running.wait().await;
    });
}

/// A reserved name that a command creates is taken away while the command goes on.
#[test]
fn a_reserved_name_goes_as_soon_as_it_appears() {
    crate::settle_level();
    let world = World::new();
    let script = "mkdir .codex && echo '{}' > .mcp.json; until test ! -e .codex -a ! -e .mcp.json; do :; done; echo gone; sleep 60";
    let launch = world.launch(&workspace_write(), &["/bin/sh", "-c", script]);
    let limits = codex_sandbox::Limits { timeout: Some(std::time::Duration::from_secs(30)), ..Default::default() };
    runtime().block_on(async {
        let (sender, mut chunks) = tokio::sync::mpsc::channel(8);
        let told = async { chunks.recv().await.map(|chunk: codex_sandbox::Chunk| chunk.bytes) };
        tokio::select! {
            told = told => assert_eq!(told.as_deref(), Some(b"gone\n".as_slice())),
            _ = codex_sandbox::run(launch, limits, sender) => panic!("the names are there for 30 seconds"),
        }
    });
}
