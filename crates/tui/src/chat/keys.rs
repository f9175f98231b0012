//! Reads keys from the terminal, and switches raw mode on and off.
//!
//! A lone Esc is distinguished from the start of a sequence by time: the rest of a sequence follows within `ESCAPE`.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste, Event, KeyCode, KeyEvent, KeyEventKind};
use crossterm::event::{KeyModifiers, poll};
use crossterm::{QueueableCommand, terminal};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{QueueSelector, tcflush};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

pub use crate::key::Key;

/// The time that the reader waits for a key before it checks for other requests.
const SLICE: Duration = Duration::from_millis(100);

/// The time limit for the rest of a split sequence.
const ESCAPE: Duration = Duration::from_millis(50);

/// The capacity of the key queue; a terminal that sends more is not read for a while.
const WAITING: usize = 1024;

#[derive(Debug)]
pub(crate) enum Input {
    /// A key, and the time when it was read.
    Key(Key, Instant),
    /// The terminal was resized.
    Resized,
    /// The program was stopped and continued. Another program may have used the terminal in the meantime.
    Continued,
    /// Everything typed before the discard request with this number precedes this.
    Discarded(u64),
    /// The terminal is gone.
    Gone,
}

pub struct Keys {
    inputs: mpsc::Receiver<Input>,
    continued: tokio::signal::unix::Signal,
    wish: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    mode: TerminalMode,
}

impl Keys {
    /// Reads keys of a terminal in raw mode on a separate thread, until this is dropped.
    pub fn read(raw: &Raw) -> io::Result<Self> {
        let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let (sender, inputs) = mpsc::channel(WAITING);
        let (wish, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let watcher = sender.clone();
        std::thread::Builder::new().name("hang-up".to_owned()).spawn(move || watch(&watcher))?;
        let reader = Reader { sender, wish: Arc::clone(&wish), granted: 0, is_over: Arc::clone(&is_over) };
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || reader.run())?;
        Ok(Self { inputs, continued, wish, is_over, mode: raw.mode })
    }

    pub(crate) async fn next(&mut self) -> Input {
        tokio::select! {
            Some(()) = self.continued.recv() => Input::Continued,
            input = self.inputs.recv() => input.unwrap_or(Input::Gone),
        }
    }

    /// Discards pending input. [`Input::Discarded`] with the returned number confirms it.
    pub(crate) fn discard(&self) -> u64 {
        self.wish.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Restores the terminal and stops the process group until somebody continues it. Called from the main thread,
    /// which receives the signal, so nothing runs before the stop.
    pub(crate) fn suspend(&self) -> io::Result<()> {
        self.mode.restore();
        let stopped = kill_current_process_group(Signal::TSTP);
        self.mode.take()?;
        Ok(stopped?)
    }

    /// Sets up the terminal again after another program has used it.
    pub(crate) fn retake(&self) -> io::Result<()> {
        self.mode.restore();
        self.mode.take()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// The thread that reads.
struct Reader {
    sender: mpsc::Sender<Input>,
    /// The latest discard request.
    wish: Arc<AtomicU64>,
    /// The last discard request that was completed.
    granted: u64,
    is_over: Arc<AtomicBool>,
}

impl Reader {
    fn run(mut self) {
        while !self.is_over.load(Ordering::SeqCst) {
            if self.step().is_err() {
                // Nobody is left to tell if this fails.
                let _: Result<(), _> = self.sender.blocking_send(Input::Gone);
                return;
            }
        }
    }

    fn step(&mut self) -> io::Result<()> {
        let wish = self.wish.load(Ordering::SeqCst);
        if wish > self.granted {
            self.granted = wish;
            tcflush(io::stdin(), QueueSelector::IFlush)?;
            while poll(Duration::ZERO)? {
                event::read()?;
            }
            return self.send(Input::Discarded(wish));
        }
        if !poll(SLICE)? {
            return Ok(());
        }
        let first = event::read()?;
        if !is_escape(&first) {
            return input(first).map_or(Ok(()), |input| self.send(input));
        }
        let mut failed = None;
        let inputs = after_escape(|| match poll(ESCAPE) {
            Ok(true) => event::read().map_err(|error| failed = Some(error)).ok(),
            Ok(false) => None,
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        inputs.into_iter().try_for_each(|input| self.send(input))?;
        failed.map_or(Ok(()), Err)
    }

    fn send(&self, input: Input) -> io::Result<()> {
        self.sender.blocking_send(input).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Waits until the terminal hangs up. A reader of a terminal that is gone waits forever, without an error.
fn watch(sender: &mpsc::Sender<Input>) {
    let stdin = io::stdin();
    loop {
        // No events are requested, so only a hang-up or an error ends the wait.
        let mut waiting = [PollFd::new(&stdin, PollFlags::empty())];
        if rustix::event::poll(&mut waiting, None) != Err(Errno::INTR) {
            // The chat may be over already.
            let _: Result<(), _> = sender.blocking_send(Input::Gone);
            return;
        }
    }
}

fn is_escape(event: &Event) -> bool {
    matches!(event, Event::Key(key) if key.code == KeyCode::Esc && key.modifiers.is_empty())
}

/// The inputs for Esc and the bytes right after it. A sequence that was split after its first byte is reassembled.
fn after_escape(mut next: impl FnMut() -> Option<Event>) -> Vec<Input> {
    let now = Instant::now();
    let press = |key| Input::Key(key, now);
    let typed = |event: &Event| match event {
        Event::Key(KeyEvent { code: KeyCode::Char(c), modifiers, .. })
            if !modifiers.contains(KeyModifiers::CONTROL) =>
        {
            Some(*c)
        }
        _ => None,
    };
    let Some(event) = next() else { return vec![press(Key::Esc)] };
    if !matches!(typed(&event), Some('[' | 'O')) {
        // A key with Alt arrives in one piece, and input after Esc is not lost.
        return [Some(press(Key::Esc)), input(event)].into_iter().flatten().collect();
    }
    let mut rest = String::new();
    while let Some(event) = next() {
        let Some(c) = typed(&event) else { return input(event).into_iter().collect() };
        rest.push(c);
        if ('@'..='~').contains(&c) {
            return named(&rest).map(press).into_iter().collect();
        }
    }
    // Nobody types that fast, so it was an incomplete sequence.
    Vec::new()
}

/// The key for the rest of a sequence.
fn named(rest: &str) -> Option<Key> {
    Some(match rest {
        "A" => Key::Up,
        "B" => Key::Down,
        "C" => Key::Right,
        "D" => Key::Left,
        "H" | "1~" => Key::Home,
        "F" | "4~" => Key::End,
        "3~" => Key::Delete,
        "5~" => Key::PageUp,
        "6~" => Key::PageDown,
        "1;3C" | "1;5C" => Key::WordRight,
        "1;3D" | "1;5D" => Key::WordLeft,
        _ => return None,
    })
}

fn input(event: Event) -> Option<Input> {
    let now = Instant::now();
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => self::key(key).map(|key| Input::Key(key, now)),
        Event::Paste(text) => Some(Input::Key(Key::Paste(text), now)),
        Event::Resize(..) => Some(Input::Resized),
        _ => None,
    }
}

fn key(KeyEvent { code, modifiers, .. }: KeyEvent) -> Option<Key> {
    let is_ctrl = modifiers.contains(KeyModifiers::CONTROL);
    let is_alt = modifiers.contains(KeyModifiers::ALT);
    Some(match code {
        // Raw mode reports a line feed like this: terminals send it for Ctrl-J, and for pasted line breaks.
        KeyCode::Char('j') if is_ctrl => Key::NewLine,
        KeyCode::Char(c) if is_ctrl => Key::Ctrl(c.to_ascii_lowercase()),
        KeyCode::Char(c) if is_alt => Key::Alt(c),
        KeyCode::Char(c) => Key::Char(c),
        KeyCode::Enter if is_alt || modifiers.contains(KeyModifiers::SHIFT) => Key::NewLine,
        KeyCode::Enter => Key::Enter,
        KeyCode::Tab => Key::Char('\t'),
        KeyCode::Backspace if is_alt || is_ctrl => Key::Ctrl('w'),
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Delete => Key::Delete,
        KeyCode::Left if is_ctrl || is_alt => Key::WordLeft,
        KeyCode::Right if is_ctrl || is_alt => Key::WordRight,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Esc => Key::Esc,
        _ => return None,
    })
}

/// The settings of the terminal while the chat uses it.
#[derive(Debug, Clone, Copy)]
struct TerminalMode {
    has_pastes: bool,
    /// Opens the terminal for control sequences.
    out: fn() -> io::Stdout,
}

impl TerminalMode {
    /// Sets up the terminal. A partial failure is undone.
    fn take(self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        if self.has_pastes {
            let pastes = (self.out)().queue(EnableBracketedPaste).and_then(Write::flush);
            return pastes.inspect_err(|_| self.restore());
        }
        Ok(())
    }

    /// Restores the terminal. Errors do not matter if the terminal is gone.
    fn restore(self) {
        if self.has_pastes {
            let _: io::Result<()> = (self.out)().queue(DisableBracketedPaste).and_then(Write::flush);
        }
        let _: io::Result<()> = terminal::disable_raw_mode();
    }
}

/// Raw mode. Dropping it restores the terminal; so does a panic of the chat, before it is printed. A panic of another
/// thread does not: it ends only that thread, and the chat continues.
pub struct Raw {
    mode: TerminalMode,
}

impl Raw {
    /// Enables raw mode, and bracketed paste unless the terminal is dumb. `out` opens the terminal.
    pub fn enter(is_dumb: bool, out: fn() -> io::Stdout) -> io::Result<Self> {
        let mode = TerminalMode { has_pastes: !is_dumb, out };
        let (tell, chat) = (std::panic::take_hook(), std::thread::current().id());
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == chat {
                mode.restore();
            }
            tell(panic);
        }));
        mode.take()?;
        Ok(Self { mode })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.mode.restore();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_escape_is_distinguished_from_a_split_sequence() {
        let check = |events: &[KeyCode], expected: &[Key]| {
            let mut events = events.iter().map(|code| Event::Key(KeyEvent::new(*code, KeyModifiers::NONE)));
            let inputs = after_escape(|| events.next());
            let keys = inputs.into_iter().map(|input| match input {
                Input::Key(key, _) => key,
                other => panic!("{other:?}"),
            });
            assert_eq!(keys.collect::<Vec<_>>(), expected);
        };
        let c = KeyCode::Char;
        check(&[], &[Key::Esc]);
        check(&[c('['), c('A')], &[Key::Up]);
        check(&[c('O'), c('F')], &[Key::End]);
        check(&[c('['), c('1'), c(';'), c('5'), c('D')], &[Key::WordLeft]);
        check(&[c('['), c('2'), c('4'), c('~')], &[]);
        check(&[c('['), c('1')], &[]);
        check(&[c('/')], &[Key::Esc, Key::Char('/')]);
        check(&[KeyCode::Up], &[Key::Esc, Key::Up]);
    }

    #[test]
    fn keys_have_one_name_each() {
        let pressed = |code, modifiers| key(KeyEvent::new(code, modifiers));
        let ctrl = KeyModifiers::CONTROL;
        assert_eq!(pressed(KeyCode::Char('C'), ctrl), Some(Key::Ctrl('c')));
        assert_eq!(pressed(KeyCode::Char('j'), ctrl), Some(Key::NewLine));
        assert_eq!(pressed(KeyCode::Enter, KeyModifiers::ALT), Some(Key::NewLine));
        assert_eq!(pressed(KeyCode::Backspace, KeyModifiers::ALT), Some(Key::Ctrl('w')));
        assert_eq!(pressed(KeyCode::Left, ctrl), Some(Key::WordLeft));
        assert_eq!(pressed(KeyCode::F(5), KeyModifiers::NONE), None);
    }
}
