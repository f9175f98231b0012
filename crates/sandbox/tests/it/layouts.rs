//! Random hostile layouts: several commands and patches put files that git reads where they may, in many forms, and the
//! user's next git commands run nothing of theirs. The same commands of git without the hostile parts keep working.
//!
//! `CODEX_TEST_LAYOUTS=2000` plays that many, `CODEX_TEST_SEED` begins with another one; each complaint names its seed.

use std::process::Command;

use codex_sandbox::{Exit, Findings, OwnChanges};

use crate::inspection::{left, policy, repository};
use crate::support::World;

/// The number of layouts that are played by default.
const LAYOUTS: u64 = 12;

/// Numbers that are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Places for a repository: `$R` is one of them in what follows.
const PLACES: &[&str] = &["src/n", "n", "src/.idea/r", "node_modules/a/b", "deep/a/b/c/d/e", "$T/n", "$T/a/b/n"];
/// Ways to have a repository there. `$G` is its git folder.
const MAKES: &[&str] = &[
    "mkdir -p $R; git init -q $R; G=$R/.git",
    "mkdir -p $R; git init -q --bare $R; G=$R; git -C $R config core.bare false; git -C $R config core.worktree $W/src",
    "mkdir -p $R $T/sep; git init -q --separate-git-dir $T/sep/x $R; G=$T/sep/x",
    "git worktree add -q --detach $R; G=.git/worktrees/${R##*/}",
    "G=.git; R=.",
    "mkdir -p $R/objects $R/refs; echo ref: refs/heads/main > $R/HEAD; printf '[core]\\nrepositoryformatversion=0\\n' > $R/config; G=$R",
    "mkdir -p $R; git init -q $R; mv $R/.git $R/real; ln -s real $R/.git; G=$R/real",
    "mkdir -p $R .git/modules/x; git init -q --bare .git/modules/x; git -C .git/modules/x config core.bare false; git -C .git/modules/x config core.worktree $W/$R; echo gitdir: $W/.git/modules/x > $R/.git; G=.git/modules/x",
];
/// Things that make git run something or write elsewhere. `$C` is the file that must not be made.
const HARMS: &[&str] = &[
    "printf '[core]\\n\\tfsmonitor = touch $C; false\\n' >> $G/config",
    "printf '[core]\\n\\tfsmonitor = touch $C; false\\n' >> $G/config.worktree; git -C $R config extensions.worktreeConfig true",
    "printf '#!/bin/sh\\ntouch $C\\n' > $G/hooks/post-commit; chmod +x $G/hooks/post-commit",
    "mkdir -p $G/hooks; printf '#!/bin/sh\\ntouch $C\\n' > evil; chmod +x evil; ln -s $W/evil $G/hooks/post-index-change",
    "printf '[include]\\n\\tpath = $W/evil\\n' >> $G/config; printf '[core]\\n\\tfsmonitor = touch $C; false\\n' > evil",
    "printf '[alias]\\n\\tst = !touch $C\\n[core]\\n\\teditor = touch $C\\n' >> $G/config",
    "printf '[filter \"x\"]\\n\\tclean = touch $C; cat\\n' >> $G/config; mkdir -p $G/info; echo '* filter=x' > $G/info/attributes",
    "printf '[core]\\n\\thooksPath = $W/h\\n' >> $G/config; mkdir -p h; printf '#!/bin/sh\\ntouch $C\\n' > h/post-commit; chmod +x h/post-commit",
    "mkdir -p $G/rebase-merge; git rev-parse HEAD > $G/rebase-merge/onto; cp $G/rebase-merge/onto $G/rebase-merge/orig-head; echo refs/heads/main > $G/rebase-merge/head-name; : > $G/rebase-merge/interactive; : > $G/rebase-merge/done; echo 1 > $G/rebase-merge/msgnum; echo 1 > $G/rebase-merge/end; echo exec touch $C > $G/rebase-merge/git-rebase-todo",
    "ln -sfn $D/file $G/objects/info/commit-graph; git -C $R config gc.writeCommitGraph true",
    "rm -f $G/index; ln -s $D/file $G/index",
    "mkdir -p $G/branches; echo $D/store.git > $G/branches/origin",
    "mkdir -p agit/hooks; printf '#!/bin/sh\\ntouch $C\\n' > agit/hooks/post-checkout; chmod +x agit/hooks/post-checkout; git add agit; rm -r agit; sed -i s,agit/hooks,.git/hooks, .git/index",
    "echo ../alt > $G/commondir; mkdir -p $R/alt/objects $R/alt/refs; printf '[core]\\n\\tfsmonitor = touch $C; false\\n' > $R/alt/config",
    "ln $G/config second 2>/dev/null; printf '[core]\\n\\tfsmonitor = touch $C; false\\n' >> second",
];
/// Ways to hide it.
const HIDES: &[&str] = &[
    ":",
    "chmod 311 $G",
    "chmod 311 $G/hooks $G/rebase-merge",
    "touch -d @0 $G/config $G/HEAD $G/hooks",
    "S=$(git rev-parse HEAD); git update-index --add --cacheinfo 160000,$S,$R",
    "mkdir -p moved; mv $R moved/x",
    "(sleep 600 &)",
    "chmod 000 $G/config",
];
/// Commands of the user, in the workspace and in each repository that is found.
const USERS: &str = "git status; git status --short; git diff; git diff --cached; git log -3; git show; git branch -a; \
    git stash list; git add -A; git commit -q -m x; git commit -q --allow-empty -m y; git checkout -q .; git restore .; \
    git checkout -q -b other; git st; git tag v1; git rebase --continue; git gc -q --prune=now; git fsck; \
    git push -q origin HEAD:x; git fetch -q; git submodule status; git worktree list; git config -l; git ls-files; \
    git merge --continue; git stash; git describe --always; git blame a; git reflog";

/// Runs a script as the user does: outside, in a clean home.
fn outside(world: &World, script: &str) {
    let script = text(world, script);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{IDENTITY} {script}")]).current_dir(world.ws("")).env("HOME", world.path("home"));
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_EDITOR", "true")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .expect("a shell runs");
}

const IDENTITY: &str = "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@x GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@x;";

fn text(world: &World, text: &str) -> String {
    let shown = |path: std::path::PathBuf| path.display().to_string();
    let ws = shown(world.ws(""));
    let text = text.replace("$C", &shown(world.path("canary"))).replace("$W", ws.trim_end_matches('/'));
    text.replace("$D", &shown(world.path("outside"))).replace("$T", &shown(world.path("tmpdir")))
}

/// The commands of a layout, in order.
fn commands(dice: &mut Dice) -> Vec<String> {
    let mut commands = Vec::new();
    for _ in 0..=dice.below(2) {
        let place = dice.one(PLACES);
        let make = dice.one(MAKES);
        let mut harms: Vec<&str> = (0..=dice.below(2)).map(|_| dice.one(HARMS)).collect();
        harms.push(dice.one(HIDES));
        let begin = format!("R={place}; {make}");
        // All at once, or in several commands, which find what the first has made.
        if dice.below(3) == 0 {
            commands.push(format!("{begin}; {}", harms.join("; ")));
        } else {
            commands.push(begin.clone());
            commands.extend(harms.iter().map(|harm| format!("R={place}; {{ {make}; }} >/dev/null 2>&1; {harm}")));
        }
    }
    commands
}

/// Plays a layout and returns whether a program ran or a file outside was written.
fn gets_through(seed: u64) -> Option<String> {
    let mut dice = Dice(seed);
    let world = repository();
    outside(
        &world,
        "echo CLEAN > $D/file; git init -q --bare $D/store.git; printf '#!/bin/sh\\ntouch $C\\n' > $D/store.git/hooks/pre-receive; chmod +x $D/store.git/hooks/pre-receive",
    );
    let commands = commands(&mut dice);
    for command in &commands {
        let command = text(&world, command);
        if dice.below(4) > 0 {
            left(&world, &format!("ulimit -t 20; {command}"));
            continue;
        }
        // Changes of this program itself have the same rights as a patch: no links and no modes, but any text.
        let findings = Findings::default();
        let profile = world.profile(&policy()).expect("there is a policy").reporting_to(&findings);
        let changes = OwnChanges::expected(&profile);
        let folder = dice.one(&["ws/src", "ws/p", "tmpdir/p"]);
        for (name, text) in [("HEAD", "ref: refs/heads/main"), ("objects/x", ""), ("refs/x", "")] {
            world.write(&format!("{folder}/{name}"), text);
        }
        let config = format!(
            "[core]\nbare = false\nworktree = .\nfsmonitor = touch {}; false\n",
            world.path("canary").display()
        );
        world.write(&format!("{folder}/config"), &config);
        changes.inspect();
    }
    let early = world.path("canary").exists();
    outside(&world, USERS);
    let nested = "find . $T -name '.git*' -prune -print -o -name 'HEAD*' -print 2>/dev/null | while read f; do (cd \"$(dirname \"$f\")\" && { ";
    outside(&world, &format!("{nested}{USERS}; }}) >/dev/null 2>&1 </dev/null; done"));
    let is_clean = std::fs::read_to_string(world.path("outside/file")).is_ok_and(|text| text == "CLEAN\n");
    let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(world.path("")).status();
    (!early && (world.path("canary").exists() || !is_clean)).then(|| format!("seed {seed}: {commands:#?}"))
}

#[test]
pub(crate) fn no_layout_makes_the_users_git_run_anything() {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse().ok());
    let (first, layouts) = (number("CODEX_TEST_SEED").unwrap_or(1), number("CODEX_TEST_LAYOUTS").unwrap_or(LAYOUTS));
    let found: Vec<String> = (first..first + layouts).filter_map(gets_through).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Work without anything hostile leaves no findings and continues to work, in every place and in any order.
#[test]
pub(crate) fn honest_layouts_keep_working() {
    const STEPS: &[&str] = &[
        "git commit -q --allow-empty -m x",
        "echo x >> a; git stash -q; git stash pop -q",
        "git checkout -q -b topic$N; git checkout -q -",
        "git init -q src/made$N; cd src/made$N; git commit -q --allow-empty -m x; git config user.name me",
        "git clone -q . src/clone$N; cd src/clone$N; git commit -q --allow-empty -m y",
        "git worktree add -q --detach src/tree$N; cd src/tree$N; git commit -q --allow-empty -m z",
        "git commit -q --allow-empty -m one; git rebase -q --autostash HEAD~1",
        "git init -q --bare src/store$N; git push -q src/store$N HEAD:refs/heads/x",
        "git init -q $T/made$N; cd $T/made$N; git commit -q --allow-empty -m x",
        "git gc -q; git status",
    ];
    if !crate::support::has_namespaces() {
        return;
    }
    let mut dice = Dice(7);
    let world = repository();
    for number in 0..30 {
        let step = text(&world, &dice.one(STEPS).replace("$N", &number.to_string()));
        let (report, exit) = left(&world, &format!("set -e; {step}"));
        assert_eq!((report.findings.len(), exit), (0, Exit::Code(0)), "{step}: {:?}", report.findings);
    }
}
