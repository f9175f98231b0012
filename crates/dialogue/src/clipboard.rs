//! A picture on the clipboard of the desktop, which terminals do not pass on. A program of the desktop reads it.

use std::ffi::OsStr;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use tokio::process::Command;

use crate::program;

/// The time limit of a program, and the most that it may print.
const MOST_TIME: Duration = Duration::from_secs(5);
const MOST_BYTES: u64 = 32 * 1024 * 1024;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const NONE: &str = "there is no picture on the clipboard";

/// The script that prints the picture as text, because `PowerShell` changes bytes that it prints.
const POWERSHELL: &str = "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; \
    $p = [Windows.Forms.Clipboard]::GetImage(); if ($p) { $m = New-Object IO.MemoryStream; \
    $p.Save($m, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($m.ToArray()) }";

/// The variable of a desktop, and the program that reads its clipboard.
const READERS: &[(&str, &str, &[&str])] = &[
    ("WAYLAND_DISPLAY", "wl-paste", &["--no-newline", "--type", "image/png"]),
    ("DISPLAY", "xclip", &["-selection", "clipboard", "-t", "image/png", "-o"]),
    ("WSL_DISTRO_NAME", "powershell.exe", &["-NoProfile", "-STA", "-Command", POWERSHELL]),
];

/// The picture on the clipboard as PNG. `variable` reads the environment, and `programs` are the folders of programs that
/// may run.
///
/// # Errors
/// If there is none, or no program can read it. The error is for people.
pub async fn picture(variable: impl Fn(&str) -> Option<String>, programs: &OsStr) -> Result<Vec<u8>, String> {
    let mut missing = Vec::new();
    for (desktop, program, arguments) in READERS {
        if variable(desktop).is_none_or(|value| value.is_empty()) {
            continue;
        }
        let mut command = Command::new(program);
        command.args(*arguments).env("PATH", programs);
        match program::output(command, MOST_TIME, MOST_BYTES).await {
            Ok(bytes) => return decoded(bytes).ok_or_else(|| NONE.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing.push(*program),
            Err(error) => return Err(format!("`{program}` failed: {error}")),
        }
    }
    Err(match missing.as_slice() {
        [] => "there is no desktop whose clipboard could be read; paste the path of a file".to_owned(),
        missing => format!("install {} to attach pictures from the clipboard", missing.join(" or ")),
    })
}

/// A picture as it is, or as text.
fn decoded(bytes: Vec<u8>) -> Option<Vec<u8>> {
    let picture = if bytes.starts_with(PNG) { bytes } else { BASE64.decode(bytes.trim_ascii()).ok()? };
    picture.starts_with(PNG).then_some(picture)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The answer if a desktop has a program of this name that runs a script.
    async fn read(desktop: &str, name: &str, script: &str) -> Result<Vec<u8>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
        picture(|variable| (variable == desktop).then(|| "x".to_owned()), folder.path().as_os_str()).await
    }

    #[tokio::test]
    async fn a_program_of_each_desktop_reads_the_picture() {
        let raw = r"printf '\211PNG\r\n\032\nrest'";
        for (desktop, name, script) in [
            ("WAYLAND_DISPLAY", "wl-paste", raw),
            ("DISPLAY", "xclip", raw),
            ("WSL_DISTRO_NAME", "powershell.exe", "echo iVBORw0KGgpyZXN0"),
        ] {
            assert_eq!(read(desktop, name, script).await, Ok([PNG, b"rest"].concat()), "{name}");
        }
    }

    #[tokio::test]
    async fn everything_else_is_told() {
        assert_eq!(read("DISPLAY", "xclip", "echo 'no such target' >&2; exit 1").await, Err(NONE.to_owned()));
        assert_eq!(read("DISPLAY", "xclip", "echo a text").await, Err(NONE.to_owned()));
        let missing = read("WAYLAND_DISPLAY", "other", "").await;
        assert_eq!(missing, Err("install wl-paste to attach pictures from the clipboard".to_owned()));
        assert!(read("OTHER", "xclip", "").await.is_err_and(|why| why.contains("no desktop")));
    }
}
