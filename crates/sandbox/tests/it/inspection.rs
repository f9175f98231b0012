//! Files that a command leaves do not make the user's programs run code, and ordinary work is left alone.

use std::path::Path;
use std::process::Command;

use codex_sandbox::{Exit, Findings, Report, SandboxContext};
use codex_wire::policy::{SandboxPolicy, WorkspaceWrite};

use crate::support::{World, entries, git, run, workspace_write};

const IDENTITY: &str = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@x;";

/// Private temporary folders, so that tests do not interfere with each other.
pub(crate) fn policy() -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite(WorkspaceWrite { exclude_slash_tmp: true, ..WorkspaceWrite::default() })
}

/// Runs a script in the sandbox and returns the findings after it, and its outcome.
pub(crate) fn left(world: &World, script: &str) -> (Report, Exit) {
    left_under(world, &world.sandbox_context(), script)
}

fn left_under(world: &World, sandbox_context: &SandboxContext, script: &str) -> (Report, Exit) {
    let findings = Findings::default();
    let profile = codex_sandbox::Profile::new(&policy(), &world.ws(""), sandbox_context);
    let profile = profile.map(|profile| profile.reporting_to(&findings));
    let mut launch = world.launch(&workspace_write(), &["/bin/sh", "-c", &format!("{IDENTITY} {script}")]);
    launch.confinement = profile.into();
    let finished = run(launch).expect("it starts");
    (findings.take(), finished.exit)
}

/// The new name of something that was disarmed, which nobody could know before.
fn disarmed(path: &Path) -> std::path::PathBuf {
    let folder = path.parent().expect("it is in a folder");
    let start = format!("{}.disabled-by-codex-", path.file_name().expect("it has a name").display());
    let names = entries(folder);
    let name = names.iter().find_map(|name| name.strip_prefix(&start).map(|number| (name, number)));
    let (name, number) = name.expect("it was renamed");
    assert_eq!(number.len(), 16, "{name}");
    folder.join(name)
}

/// The paths of the findings, below the workspace.
fn places(world: &World, report: &Report) -> Vec<String> {
    let below = |path: &Path| path.strip_prefix(world.ws("")).unwrap_or(path).display().to_string();
    let mut places: Vec<String> = report.findings.iter().map(|finding| below(&finding.path)).collect();
    places.sort();
    places
}

/// A workspace with a repository, as `init` makes it.
pub(crate) fn repository() -> World {
    crate::settle_level();
    let world = World::new();
    world.write("ws/a", "1\n");
    world.write("ws/src/b", "2\n");
    git(&world.ws(""), &["init", "-q"]);
    git(&world.ws(""), &["config", "user.name", "t"]);
    git(&world.ws(""), &["config", "user.email", "t@example.com"]);
    git(&world.ws(""), &["add", "-A"]);
    git(&world.ws(""), &["commit", "-qm", "one"]);
    world
}

/// An attack: what is prepared outside, what the command does, and what the user does afterwards. `$C` is the file that
/// must not be created, `$W` the workspace.
struct Attack {
    name: &'static str,
    before: &'static str,
    inside: &'static str,
    /// A second command.
    then: &'static str,
    after: &'static str,
}

const FSMONITOR: &str = "printf '[core]\\n\\tfsmonitor = touch $C; false\\n'";

const fn attack(name: &'static str, inside: &'static str, after: &'static str) -> Attack {
    Attack { name, before: "", inside, then: "", after }
}

const ATTACKS: &[Attack] = &[
    attack("configuration", "@FSM >> .git/config", "git status"),
    attack(
        "bare over the root",
        "rm -f .git/HEAD; echo 'ref: refs/heads/main' > HEAD; mkdir objects refs; { @FSM; \
            echo '[core]'; echo repositoryformatversion=0; echo bare=false; echo worktree=$W; } > config",
        "git status",
    ),
    attack(
        "bare over a folder",
        "cd src; git init -q --bare .; { @FSM; echo repositoryformatversion=0; \
            echo bare=false; echo worktree=$W/src; } > config",
        "cd src; git status",
    ),
    attack("nested repository", "cd src; git init -q; @FSM >> .git/config", "cd src; git status"),
    attack(
        "nested in dependencies",
        "mkdir -p node_modules/a/b/c/d/e/f; cd node_modules/a/b/c/d/e/f; git init -q; \
            @FSM >> .git/config",
        "cd node_modules/a/b/c/d/e/f; git status",
    ),
    attack(
        "nested in hidden folders",
        "mkdir -p .cache/x; cd .cache/x; git init -q; @FSM >> .git/config",
        "cd .cache/x; git status",
    ),
    attack(
        "after many files",
        "mkdir many; cd many; seq 10001 | xargs touch; mkdir -p z/z; cd z/z; git init -q; \
            @FSM >> .git/config",
        "cd many/z/z; git status",
    ),
    attack(
        "gitlink with a filter",
        "git init -q sub; cd sub; echo x > f; git add f; git commit -qm x; printf \
            '[filter \"e\"]\\n\\tclean = touch $C; cat\\n' >> .git/config; echo '* filter=e' > .gitattributes; echo y > f; \
            cd ..; git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),sub; rm -f $C",
        "git diff",
    ),
    attack(
        "textconv and merge driver",
        "cd src; git init -q; echo '* diff=e' > .gitattributes; git add -A; printf \
            '[diff \"e\"]\\n\\ttextconv = touch $C;\\n' >> .git/config; echo 3 > b",
        "cd src; git diff",
    ),
    attack("alias", "cd src; git init -q; printf '[alias]\\n\\tst = !touch $C\\n' >> .git/config", "cd src; git st"),
    attack(
        "editor",
        "cd src; git init -q; printf '[core]\\n\\teditor = touch $C\\n' >> .git/config",
        "cd src; git commit --allow-empty",
    ),
    attack(
        "include in a new repository",
        "cd src; git init -q; @FSM > evil; printf '[include]\\n\\tpath = ../evil\\n' >> \
            .git/config",
        "cd src; git status",
    ),
    attack(
        "settings of a worktree",
        "git worktree add -q w; git -C w rev-parse; @FSM > .git/worktrees/w/config.worktree; \
            cd src; git init -q; git config extensions.worktreeConfig true; @FSM > .git/config.worktree",
        "cd src; git status; cd ../w; git status",
    ),
    attack(
        "hook of a new repository",
        "cd src; git init -q; printf '#!/bin/sh\\ntouch $C\\n' > .git/hooks/post-commit; \
            chmod +x .git/hooks/post-commit",
        "cd src; git commit -q --allow-empty -m x",
    ),
    attack(
        "hooks moved in",
        "mkdir -p prepared; printf '#!/bin/sh\\ntouch $C\\n' > prepared/post-commit; chmod +x \
            prepared/post-commit; cd src; git init -q; rm -r .git/hooks; mv ../prepared .git/hooks",
        "cd src; git commit -q --allow-empty -m x",
    ),
    attack(
        "linked hooks",
        "mkdir -p p; printf '#!/bin/sh\\ntouch $C\\n' > p/go; chmod +x p/go; cd src; git init -q; rm -r \
            .git/hooks; ln -s ../../p .git/hooks; ln -s go ../p/post-commit",
        "cd src; git commit -q --allow-empty -m x",
    ),
    attack(
        "todo of a rebase",
        "mkdir -p .git/rebase-merge; cd .git/rebase-merge; git rev-parse HEAD | tee onto orig-head; \
            git symbolic-ref HEAD > head-name; echo 'exec touch $C' > git-rebase-todo; : > done; touch interactive; \
            echo 1 > msgnum; echo 1 > end; : > quiet",
        "git rebase --continue",
    ),
    attack(
        "todo of a rebase in a worktree",
        "git worktree add -q w; cd w; git commit -q --allow-empty -m x; \
            GIT_SEQUENCE_EDITOR='echo exec touch $C; false ||  printf \"break\\nx touch $C\\n\" >' git rebase -q -i HEAD~1",
        "cd w; git rebase --continue",
    ),
    attack(
        "shared folder of settings",
        "mkdir alt; cp -r .git/objects .git/refs .git/HEAD alt; @FSM > alt/config; \
            mkdir -p .git/worktrees/x; cp .git/HEAD .git/worktrees/x; echo $W/alt > .git/worktrees/x/commondir; \
            echo $W/src/.git > .git/worktrees/x/gitdir; echo gitdir: $W/.git/worktrees/x > src/.git",
        "cd src; git status",
    ),
    attack(
        "file that leads to a folder",
        "git init -q --bare x.git; { @FSM; echo bare=false; } > x.git/config; echo \
            gitdir: ../x.git > src/.git",
        "cd src; git status",
    ),
    attack("file that leads nowhere yet", "echo gitdir: ../later > src/.git", "mv evil later; cd src; git status")
        .prepared("git init -q --bare evil; { @FSM; echo bare=false; } > evil/config; touch -d @0 evil"),
    attack(
        "links in the git folder",
        "rm .git/index; ln -s $C .git/index; rm -rf .git/logs; ln -s $D .git/logs",
        "git status; git commit -q --allow-empty -m x; test ! -e $D/HEAD || touch $C",
    ),
    attack(
        "hooks by a comment",
        "printf '#!/bin/sh\\ntouch $C\\n' > .githooks/post-commit; chmod +x .githooks/post-commit",
        "git commit -q --allow-empty -m x",
    )
    .prepared("mkdir .githooks; printf '[core]\\n\\thooksPath = .githooks # ours\\n' >> .git/config"),
    attack(
        "hooks by an included file",
        "mkdir -p .gh; printf '#!/bin/sh\\ntouch $C\\n' > .gh/post-commit; chmod +x \
            .gh/post-commit",
        "git commit -q --allow-empty -m x",
    )
    .prepared(
        "printf '[include]\\n\\tpath = ../shared ; x\\n' >> \
            .git/config; printf '[core]\\nhooksPath = .gh\\n' > shared",
    ),
    attack("an included file", "@FSM >> shared", "git status")
        .prepared("printf '[include]\\n\\tpath = ../shared ; x\\n' >> .git/config; : > shared"),
    attack(
        "hooks by another home",
        "mkdir -p .gh; printf '#!/bin/sh\\ntouch $C\\n' > .gh/post-commit; chmod +x \
            .gh/post-commit",
        "git -c core.hooksPath=.gh commit -q --allow-empty -m x",
    ),
    attack("a script that the configuration names", "echo 'touch $C' >> tools/fsm.sh", "git status")
        .prepared("mkdir tools; echo true > tools/fsm.sh; git config core.fsmonitor 'sh tools/fsm.sh'"),
    attack(
        "a bare repository in use",
        "@FSM >> store.git/config; printf '#!/bin/sh\\ntouch $C\\n' > \
            store.git/hooks/post-update; chmod +x store.git/hooks/post-update",
        "git push -q ./store.git HEAD",
    )
    .prepared("git init -q --bare store.git"),
    attack(
        "names in the index that git would not accept",
        "mkdir -p agit/hooks; printf '#!/bin/sh\\ntouch $C\\n' > agit/hooks/post-checkout; chmod +x \
            agit/hooks/post-checkout; git add agit; rm -r agit; sed -i s,agit/hooks,.git/hooks, .git/index",
        "git checkout -q .; git checkout -q -b other",
    ),
    attack("a setting through its second name", "cd src; git init -q; ln .git/config other", "cd src; git status")
        .followed("@FSM >> src/other"),
    attack(
        "a repository below a protected name",
        "mkdir -p src/.idea/r; cd src/.idea/r; git init -q; @FSM >> .git/config",
        "cd src/.idea*/r; git status",
    ),
    attack(
        "a git folder among temporary files",
        "git init -q --bare $T/x; { @FSM; echo bare=false; echo worktree=$W/src; } > $T/x/config",
        "cd src; git status",
    )
    .followed("echo gitdir: $T/x > src/.git"),
    attack(
        "a repository among temporary files",
        "@FSM >> $T/p/.git/config; printf '#!/bin/sh\\ntouch $C\\n' > $T/p/.git/hooks/post-commit; chmod +x \
            $T/p/.git/hooks/post-commit",
        "cd $T/p; git status; git commit -q --allow-empty -m x",
    )
    .prepared("git init -q $T/p"),
    attack(
        "a remote in a file",
        "mkdir -p .git/branches; echo $D/store.git > .git/branches/origin",
        "git push -q origin HEAD:x",
    )
    .prepared(
        "git init -q --bare $D/store.git; printf '#!/bin/sh\\ntouch $C\\n' > $D/store.git/hooks/pre-receive; chmod +x \
                $D/store.git/hooks/pre-receive",
    ),
    attack(
        "a link among the objects",
        "ln -sfn $D/file .git/objects/info/commit-graph",
        "git gc -q; grep -q CLEAN $D/file || touch $C",
    )
    .prepared("echo CLEAN > $D/file; git config gc.writeCommitGraph true"),
    attack(
        "the script that a hook is a link to",
        "echo 'touch $C' >> scripts/hook",
        "git commit -q --allow-empty -m x",
    )
    .prepared(
        "mkdir scripts; echo '#!/bin/sh' > scripts/hook; chmod +x scripts/hook; ln -s ../../scripts/hook \
            .git/hooks/post-commit",
    ),
    attack(
        "a repository after many files that are only reported",
        "mkdir -p .github/workflows x/y/z; (cd .github/workflows; seq -f %g.yml 20050 | xargs touch); cd x/y/z; git init -q; \
            @FSM >> .git/config",
        "cd x/y/z; git status",
    ),
];

impl Attack {
    const fn prepared(mut self, before: &'static str) -> Self {
        self.before = before;
        self
    }

    const fn followed(mut self, then: &'static str) -> Self {
        self.then = then;
        self
    }

    fn text(world: &World, text: &str) -> String {
        let canary = world.path("canary").display().to_string();
        let (ws, outside) = (world.ws("").display().to_string(), world.path("outside").display().to_string());
        let tmpdir = world.path("tmpdir").display().to_string();
        let text = text.replace("@FSM", FSMONITOR).replace("$C", &canary).replace("$W", &ws);
        text.replace("$D", &outside).replace("$T", &tmpdir)
    }

    /// Plays it and returns whether it failed.
    fn is_held(&self, is_confined: bool) -> bool {
        let world = repository();
        let outside = |script: &str| {
            let script = format!("{IDENTITY} {}", Self::text(&world, script));
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &script]).current_dir(world.ws("")).env("HOME", world.path("home"));
            command
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("EDITOR", "true")
                .env_remove("VISUAL")
                .output()
                .expect("a shell runs");
        };
        outside(self.before);
        if is_confined {
            for command in [self.inside, self.then].into_iter().filter(|command| !command.is_empty()) {
                left(&world, &Self::text(&world, command));
            }
        } else {
            outside(self.inside);
            outside(self.then);
            let _ = std::fs::remove_file(world.path("canary"));
        }
        let is_clean = !world.path("canary").exists();
        outside(self.after);
        is_clean && !world.path("canary").exists()
    }
}

#[test]
pub(crate) fn nothing_that_a_command_leaves_runs_with_the_next_git() {
    let held = |is_confined| move |attack: &&Attack| attack.is_held(is_confined);
    let harmless: Vec<&str> = ATTACKS.iter().filter(held(false)).map(|attack| attack.name).collect();
    assert_eq!(harmless, [""; 0], "attacks that come to nothing without a sandbox");
    let open: Vec<&str> = ATTACKS.iter().filter(|attack| !attack.is_held(true)).map(|attack| attack.name).collect();
    assert_eq!(open, [""; 0]);
}

#[test]
pub(crate) fn disarmed_files_are_kept_and_named() {
    let world = repository();
    let script = "mkdir -p src/deep/.idea src/.cargo .husky; echo x > src/.npmrc; echo x > src/.cargo/config.toml; \
        cd src; git init -q; git config core.fsmonitor ./x; git config user.name me; echo x > .git/hooks/pre-push";
    let (report, _) = left(&world, script);
    let expected =
        ["src/.cargo/config.toml", "src/.git/config", "src/.git/hooks/pre-push", "src/.npmrc", "src/deep/.idea"];
    let found: Vec<String> = places(&world, &report).into_iter().filter(|place| place != ".husky").collect();
    assert_eq!(found, expected);
    assert_eq!(std::fs::read_to_string(disarmed(&world.ws("src/.npmrc"))).expect("it is kept"), "x\n");
    assert!(disarmed(&world.ws("src/deep/.idea")).is_dir());
    let now = git(&world.ws("src"), &["config", "--file", ".git/config", "--list"]);
    assert!(now.contains("user.name=me") && !now.contains("fsmonitor"), "{now}");
    let before = std::fs::read_to_string(disarmed(&world.ws("src/.git/config"))).expect("it is kept");
    assert!(before.contains("fsmonitor"), "{before}");
    let warning = report.warning().expect("something was found");
    assert!(
        warning.contains("core.fsmonitor") && warning.contains("renamed to .npmrc.disabled-by-codex-"),
        "{warning}"
    );
}

/// A day's work leaves no findings, and continues to work.
#[test]
pub(crate) fn ordinary_work_is_left_alone() {
    let world = repository();
    let day = [
        "git init -q src/new; cd src/new; git commit -q --allow-empty -m x; git branch topic; git config user.name me",
        "git clone -q src/new src/clone; cd src/clone; git checkout -q topic; git remote add other ../new; git fetch -q other",
        "git init -q --bare src/store.git; git init -q src/pushed; cd src/pushed; git commit -q --allow-empty -m x; git \
            remote add origin ../store.git; git push -q -u origin HEAD",
        "git init -q --bare src/remote; git clone -q --bare src/new src/copy",
        "mkdir -p src/node_modules/.bin src/node_modules/x; cd src; echo '{}' > package.json; echo '{}' > \
            node_modules/x/package.json; ln -s ../x/run node_modules/.bin/x; echo '{}' > package-lock.json",
        "mkdir -p src/crate/src; cd src/crate; git init -q; echo '[package]' > Cargo.toml; echo target > .gitignore",
        "mkdir -p src/bin; echo '#!/bin/sh' > src/bin/update; chmod +x src/bin/update; touch src/HEAD",
        "cd src/new; git worktree add -q ../tree; cd ../tree; git commit -q --allow-empty -m y",
    ];
    for step in day {
        let (report, exit) = left(&world, &format!("set -e; {step}"));
        assert_eq!(places(&world, &report), [""; 0], "{step}");
        // On the lower level nothing new can be created next to a repository.
        assert!(exit == Exit::Code(0) || !crate::support::has_namespaces(), "{step}");
    }
    let keeps_mode = world.ws("src/bin/update").metadata().is_ok_and(|it| mode(&it) & 0o111 != 0);
    assert!(keeps_mode || !crate::support::has_namespaces());
}

fn mode(metadata: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions())
}

#[test]
fn work_in_the_repository_of_the_workspace_is_not_disarmed() {
    crate::settle_level();
    if !crate::support::has_namespaces() {
        return;
    }
    let world = repository();
    // Settings that the user made before a command are not the command's.
    git(&world.ws(""), &["config", "alias.st", "!true"]);
    let day = [
        "echo 2 >> a; git commit -qam two; git checkout -qb topic; echo 3 >> a; git commit -qam three; git checkout -q -",
        "echo 4 > c; git add c; git commit -qm four; git rebase -q topic; git stash list; git merge -q topic",
        "git worktree add -q w; cd w; git commit -q --allow-empty -m w",
        "git tag v1; git branch -d topic; git gc -q",
        "GIT_SEQUENCE_EDITOR='sed -i 1i\\ break' git rebase -q -i HEAD~1",
        "git rebase --continue",
    ];
    for step in day {
        let (report, exit) = left(&world, &format!("set -e; {step}"));
        assert_eq!((places(&world, &report), exit), (Vec::new(), Exit::Code(0)), "{step}");
    }
    assert_eq!(git(&world.ws(""), &["config", "alias.st"]), "!true\n");
}

#[test]
fn a_strategy_that_is_no_part_of_git_is_found() {
    crate::settle_level();
    if !crate::support::has_namespaces() {
        return;
    }
    let world = repository();
    let script = "mkdir .git/rebase-merge .git/sequencer; echo ../evil > .git/rebase-merge/strategy; \
        printf '[options]\\nstrategy = evil\\n' > .git/sequencer/opts";
    let (report, _) = left(&world, script);
    assert_eq!(places(&world, &report), [".git/rebase-merge/strategy", ".git/sequencer/opts"]);
}

#[test]
fn commands_that_a_user_added_to_a_rebase_stay() {
    crate::settle_level();
    if !crate::support::has_namespaces() {
        return;
    }
    let world = repository();
    git(&world.ws(""), &["commit", "-q", "--allow-empty", "-m", "two"]);
    let list = world.write("ws/.git/rebase-merge/git-rebase-todo", "exec make test\n");
    let script = "printf 'exec make test\\nexec evil\\n' > .git/rebase-merge/git-rebase-todo";
    let (report, _) = left(&world, script);
    assert_eq!(places(&world, &report), [".git/rebase-merge/git-rebase-todo"]);
    assert_eq!(std::fs::read_to_string(list).expect("it is there"), "exec make test\n# exec evil\n");
}

#[test]
fn repositories_in_temporary_folders_are_found() {
    let world = repository();
    let tmp = world.path("tmpdir").display().to_string();
    let (report, _) = left(&world, &format!("cd {tmp}; git init -q --bare .; touch other"));
    assert_eq!(places(&world, &report), [format!("{tmp}/HEAD")]);
    let (report, _) = left(&world, &format!("mkdir -p {tmp}/.git/hooks && echo x > {tmp}/.git/hooks/pre-commit"));
    assert_eq!(places(&world, &report), [format!("{tmp}/.git")]);
    assert!(!world.path("tmpdir/.git").exists());
}

#[test]
fn many_worktrees_do_not_stop_commands() {
    let world = repository();
    for number in 0..200 {
        world.write(&format!("ws/.git/worktrees/w{number}/HEAD"), "ref: refs/heads/main\n");
    }
    let (_, exit) = left(&world, "true");
    assert_eq!(exit, Exit::Code(0));
    let (_, exit) = left(&world, "echo x > .git/worktrees/w3/commondir");
    assert_ne!(exit, Exit::Code(0));
    assert_eq!(entries(&world.ws(".git/worktrees/w3")), ["HEAD"]);
}

#[test]
fn special_files_are_not_waited_for() {
    let world = repository();
    let script = "cd src; git init -q; rm .git/config; mkfifo .git/config .git/info/attributes; mkfifo .npmrc pre-commit; \
        mkdir -p ../src/t; mkfifo t/.git";
    left(&world, script);
    let (_, exit) = left(&world, "true");
    assert_eq!(exit, Exit::Code(0));
}

#[test]
fn users_choose_names() {
    crate::settle_level();
    let world = World::new();
    let names = codex_sandbox::Names::new(&["x.cfg".to_owned()], &[".idea".to_owned()]);
    let sandbox_context = SandboxContext { names, ..world.sandbox_context() };
    std::fs::create_dir(world.ws("a")).expect("mkdir");
    let (report, _) = left_under(&world, &sandbox_context, "mkdir a/.idea; echo x > a/x.cfg; echo x > a/Makefile");
    assert_eq!(places(&world, &report), ["a/x.cfg"]);
    assert_eq!(report.changed, [world.ws("a/Makefile")]);
    assert!(world.ws("a/.idea").is_dir());
}

#[test]
fn a_command_that_still_runs_is_inspected_too() {
    use codex_sandbox::terminal::{Screen, Terminals};

    let world = repository();
    let findings = Findings::default();
    let mut launch = world.launch(&policy(), &["/bin/sh", "-c", "echo x > src/.npmrc; echo done; exec sleep 600"]);
    let profile = world.profile(&policy()).map(|profile| profile.reporting_to(&findings));
    launch.confinement = profile.into();
    crate::support::runtime().block_on(async {
        let terminals = Terminals::default();
        let id = terminals.start(launch, Screen { rows: 24, cols: 80, is_verbatim: true }).expect("it starts");
        while !world.ws("src/.npmrc").exists() {
            terminals.wait_for_output(id, std::time::Duration::from_secs(10)).await.expect("it is there");
        }
        terminals.inspect();
        codex_sandbox::cleanup_done().await;
    });
    assert_eq!(places(&world, &findings.take()), ["src/.npmrc"]);
}

#[test]
fn a_command_that_goes_on_is_inspected_by_itself() {
    use codex_sandbox::terminal::{Screen, Terminals};

    let world = repository();
    let findings = Findings::default();
    let script = format!("{IDENTITY} cd src; git init -q; git config core.fsmonitor x; exec sleep 600");
    let mut launch = world.launch(&policy(), &["/bin/sh", "-c", &script]);
    launch.confinement = world.profile(&policy()).map(|profile| profile.reporting_to(&findings)).into();
    let line = crate::support::runtime().block_on(async {
        let terminals = Terminals::default();
        let id = terminals.start(launch, Screen { rows: 24, cols: 80, is_verbatim: true }).expect("it starts");
        let told = async {
            loop {
                terminals.poll(id, std::time::Duration::from_millis(50), 1000).await.expect("it is there");
                if let Some(line) = findings.take_for_model() {
                    return line;
                }
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), told).await.expect("it is found in time")
    });
    assert!(line.contains("core.fsmonitor") && !line.contains('\n'), "{line}");
}

/// A patch is no command, and once nothing was inspected after one.
#[test]
fn changes_of_this_program_itself_are_inspected() {
    let world = repository();
    let findings = Findings::default();
    let profile = world.profile(&policy()).expect("there is a policy").reporting_to(&findings);
    let changes = codex_sandbox::OwnChanges::expected(&profile);
    for (name, text) in
        [("HEAD", "ref: refs/heads/main"), ("config", "[core]\nfsmonitor = x"), ("objects/x", ""), ("refs/x", "")]
    {
        world.write(&format!("ws/src/{name}"), text);
    }
    changes.inspect();
    assert_eq!(places(&world, &findings.take()), ["src/HEAD"]);
    assert!(!world.ws("src/HEAD").exists());
}

/// Settings and hooks of the user stay, also if they are not known to be harmless.
#[test]
fn what_was_there_stays() {
    let world = repository();
    let outside = "git config core.fsmonitor false; git config alias.x '!true'; printf '#!/bin/sh\\n' > .git/hooks/pre-commit; \
        chmod +x .git/hooks/pre-commit; mkdir -p .git/branches; echo x > .git/branches/old; git init -q --bare store.git; \
        git -C store.git config core.pager x; git init -q nested; git -C nested config core.editor x; mkdir store.git/work";
    let ran = Command::new("/bin/sh").args(["-c", outside]).current_dir(world.ws("")).status();
    assert!(ran.expect("a shell runs").success());
    for _ in 0..2 {
        let (report, _) = left(&world, "echo 5 >> a; touch nested/x");
        assert_eq!(places(&world, &report), [""; 0]);
    }
}
