//! Passes the commit to the program, and chooses how it is linked.

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
    // Packed relocations take a hundredth of the space. A linker that is too old warns and continues.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        // The unwinder of the compiler, without its shared library, which queries the processor at every start. On a
        // virtual machine each query leaves it, and together they take a twentieth of the time to `initialize`.
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}

fn target(part: &str) -> String {
    std::env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default()
}
