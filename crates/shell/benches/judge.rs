//! Measures how long it takes to judge a command: `cargo bench -p codex-shell`.

use codex_shell::{Checkout, danger, is_known_safe, parsed_commands};

const SCRIPTS: [&str; 3] = [
    "ls",
    "cd src && rg -n 'fn main' | head -20; git status --short",
    "for file in $(git ls-files '*.rs'); do sed -i 's/a/b/' \"$file\" || rm -rf target; done",
];

fn argv(script: &str) -> [String; 3] {
    ["bash", "-lc", script].map(str::to_owned)
}

#[divan::bench(args = SCRIPTS)]
fn safety(script: &str) -> bool {
    is_known_safe(&argv(script), Checkout::Own)
}

#[divan::bench(args = SCRIPTS)]
fn dangers(script: &str) -> bool {
    danger(&argv(script)).is_some()
}

#[divan::bench(args = SCRIPTS)]
fn shown(script: &str) -> usize {
    parsed_commands(&argv(script)).len()
}

fn main() {
    divan::main();
}
