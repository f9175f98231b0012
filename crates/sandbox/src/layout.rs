//! The layout of writable folders: which folders are opened, and which places inside them are closed again.
//!
//! There are three kinds of places, parents before children: *open* folders are writable, *closed* ones are not, and
//! *pinned* ones are the folders between the two, which must not be moved, because renaming a parent would carry the
//! closed child away and free its name.
//!
//! Invariant: every folder between a closed place and the open one around it is pinned. A symbolic link is never
//! followed without closing the link too.

use std::cell::OnceCell;
use std::collections::btree_map::{BTreeMap, Entry};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::git;
use crate::git::effective::Effective;
use crate::profile::Profile;
use crate::search::{self, Scratch};
use codex_guard::names::{DOT_GIT, Placeholder};

/// The maximum number of links followed from a protected name to its target.
const MAX_LINKS: usize = 8;

/// The mode of a placeholder folder: unusual enough to recognise one that an interrupted run left behind.
#[cfg(target_os = "linux")]
pub(crate) const PLACEHOLDER_FOLDER: u32 = 0o1555;
/// The mode of a placeholder file.
#[cfg(target_os = "linux")]
pub(crate) const PLACEHOLDER_FILE: u32 = 0o1444;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Writable below.
    Open,
    /// As writable as its surroundings, but it cannot be renamed or removed.
    Pinned,
    /// Not writable at all.
    Closed,
}

/// One place of the layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    /// Set if the place does not exist yet, or is another command's placeholder.
    pub(crate) placeholder: Option<Placeholder>,
}

/// All places, parents before children.
#[derive(Debug, Clone, Default)]
pub(crate) struct Layout {
    pub(crate) places: Vec<Place>,
    /// Restrictions that could not be applied, for the explanation.
    pub(crate) notes: Vec<String>,
    /// The folders that contain projects.
    pub(crate) workspaces: Vec<PathBuf>,
    /// Files in open folders that the user's own configuration names: they have to stay what they are.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "changes are inspected on Linux alone"))]
    pub(crate) bound: Vec<PathBuf>,
    /// The repositories in the open folders for temporary files.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "changes are inspected on Linux alone"))]
    pub(crate) scratch: Vec<Scratch>,
}

impl Layout {
    /// Builds the layout for `profile` from the current state of the disk.
    pub(crate) fn of(profile: &Profile) -> Self {
        let mut builder = Builder::default();
        for root in profile.writable_roots() {
            builder.open(root);
        }
        for root in profile.writable_roots() {
            builder.pin_around(root);
        }
        for root in profile.workspaces() {
            for name in profile.names().reserved() {
                builder.close_existing(&root.join(name));
            }
            git::protect_checkout(&mut builder, root, git::Outside::Opened);
        }
        search::protect(&mut builder, &profile.nested());
        let mut scratch = Vec::new();
        for root in profile.scratch_roots() {
            for name in profile.names().reserved() {
                builder.close(&root.join(name), None);
            }
            git::protect_checkout(&mut builder, root, git::Outside::Left);
            let found = Scratch::of(root, profile.names(), None);
            search::protect_points(&mut builder, &found.points);
            scratch.push(found);
        }
        for folder in profile.around_workspaces() {
            git::protect_checkout(&mut builder, folder, git::Outside::Left);
        }
        for file in profile.named_files() {
            builder.bind(file, None);
        }
        if !profile.codex_home().as_os_str().is_empty() {
            builder.close(profile.codex_home(), Some(Placeholder::Folder));
        }
        Self { workspaces: profile.workspaces().to_vec(), scratch, ..builder.finish() }
    }

    pub(crate) fn closed(&self) -> impl Iterator<Item = &Path> {
        self.of_kind(Kind::Closed)
    }

    /// The closed places that need no placeholder for a missing name. If a new name can only be refused together
    /// with all others, a missing `.git` outside of workspaces is not worth a temporary folder.
    #[cfg(target_os = "linux")]
    pub(crate) fn closed_by_rules(&self) -> impl Iterator<Item = &Path> {
        let is_spared = |place: &&Place| {
            let path = &place.path;
            place.placeholder.is_some() && path.ends_with(DOT_GIT.path) && !self.is_in_workspace(path)
        };
        let closed = self.places.iter().filter(move |place| place.kind == Kind::Closed && !is_spared(place));
        closed.map(|place| place.path.as_path())
    }

    #[cfg(target_os = "linux")]
    fn is_in_workspace(&self, path: &Path) -> bool {
        self.workspaces.iter().any(|workspace| path.starts_with(workspace))
    }

    /// The git folders in the layout whose hooks must be closed.
    #[cfg(target_os = "linux")]
    pub(crate) fn git_folders(&self) -> impl Iterator<Item = &Path> {
        self.closed().filter(|path| path.ends_with("hooks")).filter_map(Path::parent)
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &Path> {
        self.of_kind(Kind::Open)
    }

    fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Path> {
        self.places.iter().filter(move |place| place.kind == kind).map(|place| place.path.as_path())
    }
}

/// Collects places in any order.
#[derive(Default)]
pub(crate) struct Builder {
    places: BTreeMap<PathBuf, (Kind, Option<Placeholder>)>,
    notes: Vec<String>,
    bound: Vec<PathBuf>,
    user_config: OnceCell<Rc<Effective>>,
}

impl Builder {
    /// Git's configuration for all repositories of this user.
    pub(crate) fn user_config(&self) -> Rc<Effective> {
        Rc::clone(self.user_config.get_or_init(|| Rc::new(Effective::of_user())))
    }

    /// Opens a folder. A place that was closed before stays closed.
    pub(crate) fn open(&mut self, path: &Path) {
        let slot = self.places.entry(path.to_owned()).or_insert((Kind::Open, None));
        if slot.0 == Kind::Pinned {
            slot.0 = Kind::Open;
        }
    }

    /// Pins an existing folder and those between it and its root.
    pub(crate) fn pin(&mut self, path: &Path) {
        for folder in path.ancestors() {
            match self.places.entry(folder.to_owned()) {
                Entry::Occupied(entry) if entry.get().0 == Kind::Open => break,
                Entry::Occupied(_) => {}
                Entry::Vacant(entry) => {
                    entry.insert((Kind::Pinned, None));
                }
            }
        }
    }

    /// Pins the folders between a root and the root around it, so that the root keeps its name.
    fn pin_around(&mut self, root: &Path) {
        if self.root_of(root).is_some()
            && let Some(parent) = root.parent()
        {
            self.pin(parent);
        }
    }

    /// Closes a path inside an open folder; outside of open folders everything is closed anyway.
    ///
    /// A missing path is closed only if a placeholder is given.
    pub(crate) fn close(&mut self, path: &Path, placeholder: Option<Placeholder>) {
        self.close_following(path, placeholder, MAX_LINKS);
    }

    fn close_following(&mut self, path: &Path, placeholder: Option<Placeholder>, links_left: usize) {
        let Some(root) = self.root_of(path) else { return };
        let Ok(below) = path.strip_prefix(&root) else { return };
        let mut here = root;
        let mut rest = below.components();
        while let Some(Component::Normal(name)) = rest.next() {
            here.push(name);
            let last = rest.as_path().as_os_str().is_empty();
            let Ok(found) = fs::symlink_metadata(&here) else {
                let Some(placeholder) = placeholder else { return };
                let placeholder = if last { placeholder } else { Placeholder::Folder };
                return self.insert_closed(here, Some(placeholder));
            };
            if found.is_symlink() {
                self.insert_closed(here.clone(), None);
                if let (Ok(real), true) = (here.canonicalize(), links_left > 0) {
                    let target = if last { real } else { real.join(rest.as_path()) };
                    self.close_following(&target, placeholder, links_left - 1);
                }
                return;
            }
            if last {
                let left_behind = placeholder.filter(|placeholder| looks_like_placeholder(&found, *placeholder));
                return self.insert_closed(here, left_behind);
            }
            if !found.is_dir() {
                return;
            }
        }
    }

    /// Closes a file inside an open folder, and notes that it has to stay what it is: a second name of it may be open.
    pub(crate) fn bind(&mut self, path: &Path, placeholder: Option<Placeholder>) {
        if self.root_of(path).is_some() {
            self.bound.push(path.to_owned());
            self.close(path, placeholder);
        }
    }

    /// Closes a path if it exists. A placeholder that an earlier release has left there is removed afterwards.
    pub(crate) fn close_existing(&mut self, path: &Path) {
        if path.symlink_metadata().is_ok() {
            self.close(path, Some(Placeholder::Folder));
        }
    }

    /// Records a restriction that is not enforced.
    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// The innermost open folder strictly around `path`.
    pub(crate) fn root_of(&self, path: &Path) -> Option<PathBuf> {
        let is_open = |folder: &&Path| matches!(self.places.get(*folder), Some((Kind::Open, _)));
        path.ancestors().skip(1).find(is_open).map(Path::to_owned)
    }

    fn insert_closed(&mut self, path: PathBuf, placeholder: Option<Placeholder>) {
        if let Some(parent) = path.parent() {
            self.pin(parent);
        }
        match self.places.entry(path) {
            // A root that was named explicitly stays a root.
            Entry::Occupied(entry) if entry.get().0 == Kind::Open => {}
            // A name that has a placeholder for one reason keeps it when it is closed for another.
            Entry::Occupied(mut entry) => *entry.get_mut() = (Kind::Closed, placeholder.or(entry.get().1)),
            Entry::Vacant(entry) => {
                entry.insert((Kind::Closed, placeholder));
            }
        }
    }

    /// Sorts the places and drops redundant ones.
    fn finish(self) -> Layout {
        let mut places: Vec<Place> = Vec::with_capacity(self.places.len());
        let mut around: Vec<(PathBuf, bool)> = Vec::new();
        for (path, (kind, placeholder)) in self.places {
            while around.last().is_some_and(|(outer, _)| !path.starts_with(outer)) {
                around.pop();
            }
            let writable = around.last().is_some_and(|(_, writable)| *writable);
            let kind = match kind {
                Kind::Open if writable => Kind::Pinned,
                Kind::Open => Kind::Open,
                Kind::Pinned | Kind::Closed if !writable => continue,
                kind => kind,
            };
            around.push((path.clone(), kind != Kind::Closed));
            places.push(Place { path, kind, placeholder });
        }
        Layout { places, notes: self.notes, bound: self.bound, ..Layout::default() }
    }
}

/// Whether something is a placeholder that another command has created and not removed yet.
#[cfg(unix)]
fn looks_like_placeholder(found: &fs::Metadata, placeholder: Placeholder) -> bool {
    use std::os::unix::fs::PermissionsExt as _;

    is_placeholder_mode(found.permissions().mode())
        && match placeholder {
            Placeholder::Folder => found.is_dir(),
            Placeholder::File(text) => found.is_file() && found.len() <= text.len() as u64,
        }
}

/// Whether a mode is that of a placeholder, whatever the umask removed: sticky, and writable by nobody.
#[cfg(unix)]
pub(crate) fn is_placeholder_mode(mode: u32) -> bool {
    mode & 0o1222 == 0o1000
}

#[cfg(not(unix))]
fn looks_like_placeholder(_: &fs::Metadata, _: Placeholder) -> bool {
    false
}

#[cfg(all(test, unix))]
#[expect(clippy::expect_used, reason = "a test may fail where it stands")]
mod tests {
    use super::*;

    /// Creates a folder with `files`, opens it, and prints the result of `plan`, one place per line.
    #[track_caller]
    fn check(files: &[&str], plan: impl FnOnce(&mut Builder, &Path), expected: &[&str]) {
        let base = tempfile::tempdir().expect("a folder");
        let root = base.path().canonicalize().expect("it exists");
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
            fs::write(path, "").expect("write");
        }
        let mut builder = Builder::default();
        builder.open(&root);
        plan(&mut builder, &root);
        let show = |place: &Place| {
            let missing = if place.placeholder.is_some() { " (missing)" } else { "" };
            format!("{:?} {}{missing}", place.kind, place.path.strip_prefix(&root).expect("inside").display())
        };
        let shown: Vec<String> = builder.finish().places.iter().skip(1).map(show).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn folders_around_a_closed_place_are_pinned() {
        check(
            &["a/b/secret"],
            |builder, root| builder.close(&root.join("a/b/secret"), None),
            &["Pinned a", "Pinned a/b", "Closed a/b/secret"],
        );
    }

    #[test]
    fn the_first_missing_name_is_held() {
        check(
            &["a/x"],
            |builder, root| {
                builder.close(&root.join("a/b/c"), Some(Placeholder::File("")));
                builder.close(&root.join("d"), None);
            },
            &["Pinned a", "Closed a/b (missing)"],
        );
    }

    #[test]
    fn open_folders_inside_closed_ones_stay_open_and_their_closed_names_too() {
        check(
            &["m/one/hooks/x", "m/two/hooks/x"],
            |builder, root| {
                builder.close(&root.join("m"), None);
                builder.open(&root.join("m/one"));
                builder.close(&root.join("m/one/hooks"), None);
                builder.close(&root.join("m/two/hooks"), None);
            },
            &["Closed m", "Open m/one", "Closed m/one/hooks"],
        );
    }

    #[test]
    fn a_link_is_closed_together_with_what_it_leads_to() {
        check(
            &["real/hooks/x"],
            |builder, root| {
                std::os::unix::fs::symlink("real", root.join("link")).expect("symlink");
                builder.close(&root.join("link/hooks"), None);
            },
            &["Closed link", "Pinned real", "Closed real/hooks"],
        );
    }

    #[test]
    fn outside_of_open_folders_nothing_needs_closing() {
        check(&["a"], |builder, _| builder.close(Path::new("/etc/passwd"), Some(Placeholder::Folder)), &[]);
        check(&["work-evil/x"], |builder, root| builder.close(&root.join("work"), None), &[]);
    }
}
