//! Runs the examples of the README and of the pages below `docs/` as a reader would.
//!
//! A block marked `sh` must succeed; one marked `sh needs=SOMETHING` needs something that a test does not have. A block
//! marked `toml` must be a configuration in which every key has an effect, and one marked `python` a valid rules file.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Place;

/// The values of `needs`.
const NEEDS: &[&str] = &["daemon", "database", "key", "node", "peer", "repository", "sandbox", "terminal", "toolchain"];

/// Pages that need no example that runs here.
const WITHOUT_EXAMPLE: &[&str] = &["CONTRIBUTING", "README"];

/// The built-in model stands in for all others.
const CONFIG: &str = "model_provider = \"scripted\"\n";

/// A block of a page.
struct Block {
    /// Its location, for messages.
    place: String,
    language: String,
    needs: Option<String>,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is there")
}

/// The pages, each with its name.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).expect("there are documents");
    let mut paths: Vec<PathBuf> = docs.map(|entry| entry.expect("it can be listed").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.extend([root().join("README.md"), root().join("CONTRIBUTING.md")]);
    paths.sort();
    let name = |path: &PathBuf| path.file_stem().expect("it has a name").to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).expect("a page can be read"))).collect()
}

fn blocks(name: &str, page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) else { continue };
        let (language, needs) = info.split_once(" needs=").map_or((info, None), |(name, needs)| (name, Some(needs)));
        let text: Vec<&str> = lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        blocks.push(Block {
            place: format!("{name}:{}", number + 1),
            language: language.to_owned(),
            needs: needs.map(str::to_owned),
            text: text.join("\n"),
        });
    }
    blocks
}

/// A home with the offline model, and a project that is a repository with one commit.
fn place() -> Place {
    let place = Place::new().file("home/config.toml", CONFIG).file("project/README.md", "# A project\n");
    std::fs::create_dir(place.path("bin")).expect("a folder can be made");
    symlink(env!("CARGO_BIN_EXE_codex"), place.path("bin/codex")).expect("a link can be made");
    run(
        &place,
        "set-up",
        "git init -q . && git add . && git -c user.name=me -c user.email=me@example.com commit -q -m begin",
    );
    place
}

/// Runs a script in the project; it must succeed.
fn run(place: &Place, name: &str, script: &str) {
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", place.path("bin").display());
    let mut shell = Command::new("bash");
    shell.args(["-eu", "-o", "pipefail", "-c", script]).env_clear().current_dir(place.path("project"));
    shell.env("PATH", path).env("CODEX_HOME", place.path("home")).env("HOME", place.path("user"));
    let ran = shell.env("TMPDIR", place.path("tmp")).stdin(std::process::Stdio::null()).output().expect("bash runs");
    let (said, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{name}: {}\n{script}\n{said}\n{errors}", ran.status);
}

#[test]
fn every_example_runs() {
    for (name, page) in pages() {
        let place = place();
        for block in blocks(&name, &page).iter().filter(|block| block.language == "sh" && block.needs.is_none()) {
            run(&place, &block.place, &block.text);
        }
    }
}

#[test]
fn every_page_begins_with_an_example_and_skipped_ones_name_their_requirement() {
    for (name, page) in pages() {
        let blocks = blocks(&name, &page);
        for block in &blocks {
            assert!(block.needs.as_deref().is_none_or(|needs| NEEDS.contains(&needs)), "{}", block.place);
        }
        let is_run = blocks.first().is_some_and(|block| block.language == "sh" && block.needs.is_none());
        assert!(is_run || WITHOUT_EXAMPLE.contains(&name.as_str()), "{name} begins without an example that is run");
    }
}

#[test]
fn every_configuration_has_an_effect() {
    for (name, page) in pages() {
        for block in blocks(&name, &page).iter().filter(|block| block.language == "toml") {
            let place = place().file("home/config.toml", &block.text);
            let command = "codex exec --strict-config --ephemeral -c model_provider=scripted -s read-only hello";
            run(&place, &block.place, command);
        }
    }
}

#[test]
fn every_rules_example_is_valid() {
    let mut count = 0;
    for (name, page) in pages() {
        // On the page about clients, Python is Python.
        for block in blocks(&name, &page).iter().filter(|block| block.language == "python" && name != "clients") {
            let place = place().file("home/example.rules", &block.text);
            run(&place, &block.place, "codex execpolicy check --rules ../home/example.rules git status");
            count += 1;
        }
    }
    assert!(count > 0, "no page has an example of rules");
}

#[test]
fn links_lead_somewhere() {
    for (name, page) in pages() {
        let folder = if ["README", "CONTRIBUTING"].contains(&name.as_str()) { root() } else { root().join("docs") };
        for link in page.split("](").skip(1).filter_map(|rest| rest.split_once(')')) {
            let path = link.0.split('#').next().unwrap_or_default();
            let is_local = !path.is_empty() && !path.contains("://");
            assert!(!is_local || folder.join(path).exists(), "{name}: {} leads nowhere", link.0);
        }
    }
}

#[test]
fn the_readme_is_a_landing_page() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("there is one");
    assert!(readme.lines().count() <= 200, "{} lines", readme.lines().count());
}
