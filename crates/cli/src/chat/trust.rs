//! Whether a project is trusted: asked once, before anything in it is read, and saved in the user's configuration.
//!
//! Invariant: only the user's answer counts. Nothing in a folder makes it trusted.

use std::path::{Path, PathBuf};

use codex_config::{Config, ConfigEdit, Env, Home, KeyPath, Overrides, TrustLevel, UserConfig, WriteRequest};
use codex_dialogue::keys::Key;
use codex_dialogue::question::choice;
use codex_dialogue::screen::Footer;
use codex_dialogue::{ChatEnd, Dialogue};
use codex_terminal::{Row, Span};
use codex_wire::policy::{AskForApproval, SandboxMode};

use crate::transcript::{Style, visible};

/// The project of a folder: its repository, or the folder itself.
pub(crate) fn project(cwd: &Path) -> PathBuf {
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    codex_config::project_doc::repository_root(&cwd).unwrap_or(cwd)
}

/// The user's answer about a project.
pub(crate) fn level(config: &Config, project: &Path) -> Option<TrustLevel> {
    config.projects.get(project).copied()
}

/// The default policies: in a trusted project anything that can be undone is done, and in another one nothing happens
/// unasked that is not known to be harmless.
pub(crate) fn defaults(config: &Config, level: Option<TrustLevel>) -> Vec<String> {
    let (approval, sandbox) = match level {
        Some(TrustLevel::Trusted) => (AskForApproval::OnRequest, SandboxMode::WorkspaceWrite),
        Some(TrustLevel::Untrusted) | None => (AskForApproval::UnlessTrusted, SandboxMode::ReadOnly),
    };
    let mut values = Vec::new();
    if config.approval_policy.is_none() {
        values.push(format!("approval_policy={approval}"));
    }
    if config.sandbox.mode.is_none() {
        values.push(format!("sandbox_mode={sandbox}"));
    }
    values
}

pub(crate) fn keep(home: &Home, env: &Env, project: &Path, level: TrustLevel) -> anyhow::Result<()> {
    home.ensure()?;
    let Some(name) = project.to_str() else {
        anyhow::bail!("{} has a name that config.toml cannot hold", project.display());
    };
    let key = KeyPath::default().join("projects").join(name).join("trust_level");
    let overrides = Overrides::default();
    let request = WriteRequest::of([ConfigEdit::set(key.to_string(), level.as_str())]);
    UserConfig::new(home, env, &overrides).write(&request)?;
    Ok(())
}

pub(crate) fn question(project: &Path) -> Vec<Span> {
    vec![
        Span::new(Style::Yellow, "Do you trust this project?"),
        Span::new(Style::Plain, "\n"),
        Span::new(Style::Gutter, "  | "),
        Span::new(Style::Bold, visible(&project.display().to_string()).replace('\n', "\\n")),
        Span::new(Style::Plain, "\n"),
        Span::new(
            Style::Dim,
            "Trusted: Codex may edit files here and uses the project's AGENTS.md and skills.\n\
             Not trusted: read-only, and Codex asks before running anything that isn't known to be safe.\n",
        ),
    ]
}

/// The available keys, as text.
fn choices() -> Row {
    let mut row = Vec::new();
    row.extend(choice("y", "yes  "));
    row.extend(choice("n", "no  "));
    row.extend(choice("esc", "leave"));
    row
}

pub(crate) struct Trust;

impl Dialogue for Trust {
    type Answer = TrustLevel;

    fn footer(&self) -> Footer {
        Footer { status: choices(), is_question: true, ..Footer::default() }
    }

    fn press(&mut self, key: &Key) -> Option<Result<TrustLevel, ChatEnd>> {
        match key {
            Key::Char('y' | 'Y') => Some(Ok(TrustLevel::Trusted)),
            Key::Char('n' | 'N') => Some(Ok(TrustLevel::Untrusted)),
            Key::Esc | Key::Char('q' | 'Q') | Key::Ctrl('c' | 'd') => Some(Err(ChatEnd::ByChoice)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn load(home: &Home) -> Config {
        Config::load(home, &Env::from_iter::<[(&str, &str); 0]>([]), &Overrides::default()).unwrap()
    }

    #[test]
    fn an_answer_is_stored_next_to_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(
            home.config_file(),
            "# mine\nmodel = 'm' # best\n\n[projects.'/other']\ntrust_level = 'trusted'\n",
        )
        .unwrap();
        let env = Env::from_iter::<[(&str, &str); 0]>([]);
        keep(&home, &env, Path::new("/a b/c.d\"e"), TrustLevel::Untrusted).unwrap();
        keep(&home, &env, Path::new("/a b/c.d\"e"), TrustLevel::Trusted).unwrap();
        expect![[r#"
            # mine
            model = 'm' # best

            [projects.'/other']
            trust_level = 'trusted'

            [projects.'/a b/c.d"e']
            trust_level = "trusted"
        "#]]
        .assert_eq(&std::fs::read_to_string(home.config_file()).unwrap());
        assert_eq!(level(&load(&home), Path::new("/a b/c.d\"e")), Some(TrustLevel::Trusted));
        assert_eq!(level(&load(&home), Path::new("/a b")), None);
    }

    #[test]
    fn policies_follow_trust_only_where_the_user_names_none() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let of = |level| defaults(&load(&home), level).join(" ");
        assert_eq!(of(Some(TrustLevel::Trusted)), "approval_policy=on-request sandbox_mode=workspace-write");
        assert_eq!(of(Some(TrustLevel::Untrusted)), "approval_policy=untrusted sandbox_mode=read-only");
        assert_eq!(of(None), "approval_policy=untrusted sandbox_mode=read-only");
        std::fs::write(home.config_file(), "approval_policy = 'never'").unwrap();
        assert_eq!(of(Some(TrustLevel::Trusted)), "sandbox_mode=workspace-write");
    }

    #[test]
    fn a_folder_belongs_to_its_repository_and_links_do_not_change_that() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        codex_files::testing::make_git_folder(&root.join("repo/.git")).unwrap();
        std::fs::create_dir_all(root.join("repo/src/deep")).unwrap();
        assert_eq!(project(&root.join("repo/src/deep")), root.join("repo"));
        std::os::unix::fs::symlink(root.join("repo/src"), root.join("link")).unwrap();
        assert_eq!(project(&root.join("link")), root.join("repo"));
        // A file that claims to be a worktree of a trusted repository makes nothing trusted: the folder is its own
        // project.
        std::fs::create_dir(root.join("forged")).unwrap();
        std::fs::write(root.join("forged/.git"), format!("gitdir: {}/repo/.git", root.display())).unwrap();
        assert_eq!(project(&root.join("forged")), root.join("forged"));
    }
}
