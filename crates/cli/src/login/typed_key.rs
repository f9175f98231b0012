//! A key that is piped in or typed.

use std::io::{BufReader, IsTerminal, Read};

use anyhow::{Context, bail};

use crate::console;

/// The longest key that is read.
const MOST_BYTES: u64 = 64 * 1024;

/// Keys that mean something while a key is typed.
const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;
const BACKSPACE: u8 = 8;
const CLEAR: u8 = 21;
const DELETE: u8 = 127;

/// Reads a key: all of standard input, or a line of a terminal, which does not show it.
pub(super) fn read_key() -> anyhow::Result<String> {
    let mut stdin = std::io::stdin().take(MOST_BYTES);
    if !std::io::stdin().is_terminal() {
        let mut key = String::new();
        stdin.read_to_string(&mut key).context("could not read the key")?;
        return Ok(key);
    }
    let unseen = NoEcho::begin()?;
    console::ask("Paste your API key (input is hidden) and press Enter: ")?;
    let mut key = Vec::new();
    for byte in BufReader::new(stdin).bytes() {
        match byte.context("could not read the key")? {
            b'\r' | b'\n' | END_OF_INPUT => break,
            INTERRUPT => {
                drop(unseen);
                bail!("no key was stored");
            }
            BACKSPACE | DELETE => drop(key.pop()),
            CLEAR => key.clear(),
            byte => key.push(byte),
        }
    }
    drop(unseen);
    String::from_utf8(key).context("the key is not text")
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct NoEcho;

impl NoEcho {
    fn begin() -> anyhow::Result<Self> {
        crossterm::terminal::enable_raw_mode().context("could not keep the terminal from showing the key")?;
        Ok(Self)
    }
}

impl Drop for NoEcho {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing either way.
        let _: std::io::Result<()> = crossterm::terminal::disable_raw_mode();
        console::note("");
    }
}
