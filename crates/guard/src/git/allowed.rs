//! The settings of a repository that are harmless, whatever their author.
//!
//! Invariant: a setting that is not known to be harmless is treated as dangerous. No setting in this list names a
//! program, or a file that names one.

use std::path::Path;

use super::config::Entry;
use super::plain;

/// The location of a configuration.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The git folder.
    pub git: &'a Path,
    /// The writable folder around it.
    pub root: &'a Path,
    /// Whether the git folder is also a checkout, or has none.
    pub is_bare: bool,
}

const CORE: &[&str] = &[
    "abbrev",
    "autocrlf",
    "bare",
    "bigfilethreshold",
    "checkstat",
    "commitgraph",
    "compression",
    "eol",
    "filemode",
    "fscache",
    "hidedotfiles",
    "ignorecase",
    "logallrefupdates",
    "longpaths",
    "multipackindex",
    "precomposeunicode",
    "preloadindex",
    "protecthfs",
    "protectntfs",
    "quotepath",
    "repositoryformatversion",
    "safecrlf",
    "sharedrepository",
    "sparsecheckout",
    "sparsecheckoutcone",
    "splitindex",
    "symlinks",
    "trustctime",
    "untrackedcache",
    "whitespace",
];

const EXTENSIONS: &[&str] = &[
    "compatobjectformat",
    "noop",
    "objectformat",
    "partialclone",
    "preciousobjects",
    "refstorage",
    "relativeworktrees",
    "worktreeconfig",
];

/// Sections without subsections.
const PLAIN: &[(&str, &[&str])] = &[
    ("core", CORE),
    ("extensions", EXTENSIONS),
    ("user", &["name", "email", "useconfigonly"]),
    ("author", &["name", "email"]),
    ("committer", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("commit", &["gpgsign", "verbose", "cleanup", "status"]),
    ("tag", &["gpgsign", "sort"]),
    ("pull", &["rebase", "ff"]),
    ("push", &["default", "autosetupremote", "followtags", "negotiate", "recursesubmodules"]),
    ("fetch", &["prune", "prunetags", "parallel", "recursesubmodules", "writecommitgraph"]),
    ("rebase", &["autosquash", "autostash", "updaterefs", "stat"]),
    ("merge", &["ff", "conflictstyle", "renames", "stat"]),
    ("diff", &["algorithm", "renames", "mnemonicprefix", "noprefix", "context", "colormoved"]),
    ("status", &["short", "branch", "showuntrackedfiles"]),
    ("log", &["date", "decorate", "abbrevcommit"]),
    ("branch", &["autosetupmerge", "autosetuprebase", "sort"]),
    ("index", &["sparse", "version", "threads", "skiphash"]),
    ("feature", &["manyfiles", "experimental"]),
    ("rerere", &["enabled", "autoupdate"]),
    ("submodule", &["active", "recurse", "propagatebranches"]),
    ("gc", &["auto", "autodetach", "autopacklimit", "pruneexpire", "reflogexpire", "reflogexpireunreachable"]),
    ("maintenance", &["auto", "strategy"]),
    ("pack", &["threads", "windowmemory", "compression", "packsizelimit"]),
    ("receive", &["denycurrentbranch", "denynonfastforwards", "denydeletes", "shallowupdate"]),
    ("uploadpack", &["allowfilter", "allowanysha1inwant", "allowreachablesha1inwant", "allowtipsha1inwant"]),
    ("transfer", &["fsckobjects", "hiderefs"]),
    ("lfs", &["repositoryformatversion"]),
    ("color", &["ui"]),
];

/// Sections with subsections.
const NAMED: &[(&str, &[&str])] = &[
    ("remote", &["fetch", "push", "prune", "prunetags", "tagopt", "mirror", "promisor", "partialclonefilter"]),
    ("branch", &["merge", "rebase", "description", "vscode-merge-base", "gh-merge-base"]),
    ("submodule", &["active", "path", "branch", "ignore", "shallow", "fetchrecursesubmodules"]),
];

/// Sections whose values are addresses.
const ADDRESSES: &[(&str, &[&str])] =
    &[("remote", &["url", "pushurl"]), ("branch", &["remote", "pushremote"]), ("submodule", &["url"])];

/// Whether an entry is harmless.
pub fn is_allowed(entry: &Entry, place: Place<'_>) -> bool {
    let listed = |table: &[(&str, &[&str])]| {
        table.iter().any(|(section, keys)| *section == entry.section && keys.contains(&entry.key.as_str()))
    };
    // Git would cut the value off at the zero byte.
    if entry.value.as_ref().is_some_and(|value| value.contains(&0)) {
        return false;
    }
    if entry.subsection.is_none() {
        return listed(PLAIN) || entry.is("core", "worktree") && is_own_worktree(entry, place);
    }
    if entry.is("submodule", "update") {
        return matches!(entry.value.as_deref(), Some(b"checkout" | b"rebase" | b"merge" | b"none"));
    }
    listed(NAMED) || listed(ADDRESSES) && entry.value.as_deref().is_some_and(is_plain_address)
}

/// Whether the named checkout is in a place where its git folder is writable anyway.
fn is_own_worktree(entry: &Entry, place: Place<'_>) -> bool {
    let work = entry.path(place.git).map(|path| plain(&path));
    !place.is_bare && work.is_some_and(|work| work.starts_with(place.root))
}

/// Whether an address starts no program other than git's own.
fn is_plain_address(value: &[u8]) -> bool {
    let helper =
        value.iter().take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')).count();
    !value.starts_with(b"-") && !value.get(helper..).is_some_and(|rest| rest.starts_with(b"::"))
}

/// Settings that are paths or text and name no program, besides the allowed ones.
const DATA: &[(&str, &str)] = &[
    ("core", "excludesfile"),
    ("commit", "template"),
    ("blame", "ignorerevsfile"),
    ("mailmap", "file"),
    ("include", "path"),
    ("includeif", "path"),
    ("safe", "directory"),
];

/// Whether a value may be a command, or name a file that is one.
#[must_use]
pub fn may_run(entry: &Entry) -> bool {
    let nowhere = Path::new("");
    let place = Place { git: nowhere, root: nowhere, is_bare: true };
    !DATA.iter().any(|(section, key)| entry.is(section, key)) && !is_allowed(entry, place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::config::parse;

    #[track_caller]
    fn check(text: &str, expected: &[bool]) {
        let place = Place { git: Path::new("/w/a/.git"), root: Path::new("/w"), is_bare: false };
        let parsed = parse(text.as_bytes());
        assert!(!parsed.is_broken, "{text}");
        let allowed: Vec<bool> = parsed.entries.iter().map(|entry| is_allowed(entry, place)).collect();
        assert_eq!(allowed, expected, "{text}");
    }

    #[test]
    fn settings_written_by_git_itself_are_allowed() {
        check(
            "[core]\nrepositoryformatversion = 0\nfilemode = true\nbare = false\nlogallrefupdates = true",
            &[true; 4],
        );
        check("[remote \"origin\"]\nurl = https://x/y.git\nfetch = +refs/heads/*:refs/remotes/origin/*", &[true; 2]);
        check("[remote \"o\"]\nurl = git@host:a/b.git\npushurl = ../b\nurl=C:/x", &[true; 3]);
        check("[branch \"main\"]\nremote = origin\nmerge = refs/heads/main", &[true; 2]);
        check("[submodule \"lib\"]\nurl = ../lib\nactive = true\nupdate = none", &[true; 3]);
        check("[core]\nworktree = ../sub", &[true]);
    }

    /// Covers every setting of git-config(1) that is, or names, a command.
    #[test]
    fn nothing_that_runs_is_allowed() {
        let runs = "core.fsmonitor core.sshcommand core.editor core.pager core.askpass core.gitproxy core.hookspath \
            core.attributesfile core.alternaterefscommand sequence.editor diff.external diff.x.command diff.x.textconv \
            diff.tool diff.guitool difftool.x.cmd difftool.x.path mergetool.x.cmd mergetool.x.path merge.tool \
            merge.x.driver filter.x.clean filter.x.smudge filter.x.process gpg.program gpg.ssh.program \
            gpg.ssh.defaultkeycommand credential.helper credential.x.helper alias.status pager.log \
            interactive.difffilter trailer.x.command trailer.x.cmd uploadpack.packobjectshook gc.recentobjectshook \
            remote.x.uploadpack remote.x.receivepack remote.x.vcs browser.x.cmd browser.x.path man.x.cmd guitool.x.cmd \
            sendemail.tocmd sendemail.smtpserver sendemail.sendmailcmd imap.tunnel tar.x.command hook.x.command \
            init.templatedir include.path includeif.x.path pull.octopus pull.twohead branch.x.mergeoptions \
            protocol.ext.allow url.x.insteadof http.proxy http.sslcert instaweb.httpd web.browser safe.directory \
            submodule.x.update core.commentchar merge.default rebase.instructionformat";
        for name in runs.split_whitespace() {
            let (section, key) = name.split_once('.').unwrap();
            let (heading, key) = match key.rsplit_once('.') {
                Some((subsection, key)) => (format!("[{section} \"{subsection}\"]"), key),
                None => (format!("[{section}]"), key),
            };
            check(&format!("{heading}\n{key} = !touch x"), &[false]);
        }
        check("[remote \"o\"]\nurl = ext::sh -c x\nurl = -oProxyCommand=x\npushurl = fd::7\nurl", &[false; 4]);
        check("[core]\nworktree = /home\nworktree = ../../../w-evil", &[false; 2]);
        check("[core \"\"]\nbare = false\n[core \"x\"]\nbare = false", &[false; 2]);
    }
}
