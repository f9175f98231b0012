//! Tells the program which commit it is built from, and how it is linked.

use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| std::path::Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let commit = git(&["rev-parse", "--short=9", "HEAD"]).map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo:rustc-env=CODEX_LONG_VERSION={version}{commit}");
    if target("OS") == "linux" && target("ENV") == "gnu" {
        pack_relocations();
        link_unwinder();
        lay_out();
    }
}

fn target(part: &str) -> String {
    std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default()
}

/// The addresses that the loader has to adjust are listed in a hundredth of the space: there is less to read at every
/// start. Linkers that are too old to know this say so and go on.
fn pack_relocations() {
    println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
}

/// What unwinds a panic is taken into the program where the compiler has it as an archive, so that the loader has one
/// library less to find, map and relocate at every start. Only for this machine: its compiler is asked.
fn link_unwinder() {
    if std::env::var("HOST") != std::env::var("TARGET") {
        return;
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let Ok(output) = Command::new(compiler).arg("-print-file-name=libgcc_eh.a").output() else { return };
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if let Some(folder) = std::path::Path::new(&path).parent().filter(|folder| folder.is_absolute()) {
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

/// What runs at every start and in every turn is laid side by side, so that half as much of the program is in memory.
/// `layout/record.py` writes the list. A linker that somebody has chosen may not know scripts, and is left alone; a
/// program for tests is linked faster without.
fn lay_out() {
    println!("cargo:rerun-if-changed=layout/used.txt");
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let (Ok("release"), Ok(folder)) = (std::env::var("PROFILE").as_deref(), std::env::var("OUT_DIR")) else { return };
    let is_chosen = std::env::var_os("RUSTC_LINKER").is_some() || flags.contains("linker") || flags.contains("fuse-ld");
    // A comma would end the argument below.
    if is_chosen || folder.contains(',') {
        return;
    }
    let used = include_str!("layout/used.txt").lines().map(|name| format!("*(.text.{name} .text.unlikely.{name})"));
    let used = used.collect::<Vec<_>>().join("\n");
    let script = format!("SECTIONS {{ .text.used : {{\n{used}\n}} }}\nINSERT BEFORE .text;\n");
    let path = std::path::Path::new(&folder).join("layout.ld");
    if std::fs::write(&path, script).is_ok() {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", path.display());
    }
}
