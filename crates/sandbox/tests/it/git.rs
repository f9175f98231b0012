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
        "mkdir .codex".to_owned(),
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

#[test]
fn a_command_ends_when_a_protected_file_is_replaced_from_outside() {
    if !has_namespaces() {
        return;
    }
    let world = World::new();
    for file in ["ws/.git/HEAD", "ws/.git/config", "ws/.git/objects/x", "ws/.git/refs/x", "ws/.envrc"] {
        world.write(file, "");
    }
    for name in [".git/config", ".envrc"] {
        // It writes as soon as it can, and would continue for a minute.
        let script = format!("echo ready; i=0; until echo PWNED >> {name}; do i=$((i+1)); done 2>/dev/null; sleep 60");
        let launch = world.launch(&workspace_write(), &["/bin/sh", "-c", &script]);
        let finished = runtime().block_on(async {
            let (sender, mut chunks) = tokio::sync::mpsc::channel(8);
            let watch = async {
                chunks.recv().await.expect("it says something");
                std::fs::write(world.ws("new"), "from outside").expect("write");
                std::fs::rename(world.ws("new"), world.ws(name)).expect("rename");
                while chunks.recv().await.is_some() {}
            };
            tokio::join!(codex_sandbox::run(launch, codex_sandbox::Limits::default(), sender), watch).0
        });
        let finished = finished.expect("it starts");
        assert_eq!(finished.exit, Exit::Signal(9), "{}", finished.aggregated.text());
        let reason = format!("{}, which it must not write, was replaced", world.ws(name).display());
        assert!(finished.stderr.text().contains(&reason), "{}", finished.stderr.text());
    }
}
