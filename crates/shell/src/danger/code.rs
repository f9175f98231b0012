//! Detects calls that delete or empty files in code for interpreters.

use crate::reach::reads_commands;
use crate::understand::is_shell;

/// Calls that delete or empty files, in the languages of command-line interpreters.
const CALLS: &[&str] = &[
    // Several languages.
    "unlink",
    "rmtree",
    "rmdir",
    "truncate(",
    "rm -",
    // Python
    "os.remove",
    "removedirs",
    "'w').close()",
    "\"w\").close()",
    // Node, Deno and Bun
    "rmSync",
    ".rm(",
    "Deno.remove",
    // Ruby
    "FileUtils.rm",
    "FileUtils.remove",
    "rm_rf",
    "remove_dir",
    "remove_entry",
    "remove_file",
    "File.delete",
    "Dir.delete",
    // Perl
    "remove_tree",
];

/// Whether code mentions a call that deletes or empties files.
pub(super) fn deletes(code: &str) -> bool {
    CALLS.iter().any(|call| code.contains(call))
}

/// Finds deletions in code that an interpreter gets on the command line.
pub(super) fn inline(program: &str, arguments: &[&str]) -> Option<&'static str> {
    let is_inline = match program {
        "awk" | "gawk" | "mawk" | "nawk" => true,
        _ if is_shell(program) || !reads_commands(program) => false,
        _ => arguments.iter().any(|text| {
            let is_long = matches!(*text, "--eval" | "--print" | "eval");
            is_long || text.starts_with('-') && text.contains(['c', 'e', 'p', 'r'])
        }),
    };
    (is_inline && arguments.iter().any(|text| deletes(text))).then_some("deletes files")
}
