//! Reads keys from the terminal, and switches raw mode on and off.
//!
//! A lone Esc is distinguished from the start of a sequence by time: the rest of a sequence follows within `ESCAPE`.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossterm::terminal;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::process::{Signal, kill_current_process_group};
use rustix::termios::{Action, QueueSelector, tcflow, tcflush};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::input::{Burst, Mouse, Parser, Typed};
pub use crate::key::Key;
use crate::paint::Stopper;

/// The number of bytes read at once, and the most of a paste that is not marked.
const READ_BYTES: usize = 4096;
const PASTE_BYTES: usize = 2 * 1024 * 1024;

/// The time limit for the rest of a split sequence.
const ESCAPE: Duration = Duration::from_millis(50);

/// The time within which the next piece of a paste that is not marked follows.
const PIECE: Duration = Duration::from_millis(20);

/// The wishes of the chat.
const DISCARD: &[u8; 1] = b"!";
const PAUSE: &[u8; 1] = b"p";
const CONTINUE: &[u8; 1] = b"c";

/// The time limit for the reader to pause.
const PAUSED: Duration = Duration::from_secs(2);

/// The capacity of the key queue; a terminal that sends more is not read for a while.
const WAITING: usize = 1024;

#[derive(Debug)]
pub enum Input {
    /// A key, and the time when it was read.
    Key(Key, Instant),
    Mouse(Mouse),
    /// The window got or lost the focus.
    Focus(bool),
    /// The background colour of the terminal.
    Background(u8, u8, u8),
    /// The terminal was resized.
    Resized,
    /// The program was stopped and continued. Another program may have used the terminal in the meantime.
    Continued,
    /// Everything typed before the discard request with this number precedes this.
    Discarded(u64),
    /// The terminal is not read any more until that is wanted again.
    Paused,
    /// The terminal is gone.
    Gone,
}

pub struct Keys {
    inputs: mpsc::Receiver<Input>,
    continued: tokio::signal::unix::Signal,
    resized: tokio::signal::unix::Signal,
    /// Each byte is a wish: to discard, to pause, to continue. The reader ends when this is dropped.
    wishes: PipeWriter,
    wished: u64,
    mode: TerminalMode,
}

impl Keys {
    /// Reads keys of a terminal in raw mode on a separate thread, until this is dropped.
    pub fn read(raw: &Raw) -> io::Result<Self> {
        let continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        let resized = signal(SignalKind::window_change())?;
        let (sender, inputs) = mpsc::channel(WAITING);
        let (asked, wishes) = io::pipe()?;
        let reader = Reader { sender, asked, parser: Parser::default(), burst: Burst::default(), granted: 0 };
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || reader.run())?;
        Ok(Self { inputs, continued, resized, wishes, wished: 0, mode: raw.mode.clone() })
    }

    pub async fn next(&mut self) -> Input {
        tokio::select! {
            Some(()) = self.continued.recv() => Input::Continued,
            Some(()) = self.resized.recv() => Input::Resized,
            input = self.inputs.recv() => input.unwrap_or(Input::Gone),
        }
    }

    /// Discards pending input. [`Input::Discarded`] with the returned number confirms it.
    pub fn discard(&mut self) -> u64 {
        self.wished += 1;
        // If nobody reads it, the terminal is gone, which is told as an input.
        let _: io::Result<()> = self.wishes.write_all(DISCARD);
        self.wished
    }

    /// Leaves the terminal to another program. Keys typed before that are forgotten.
    ///
    /// # Errors
    /// If the reader does not stop reading.
    pub async fn pause(&mut self) -> io::Result<()> {
        self.wishes.write_all(PAUSE)?;
        let paused = async {
            loop {
                match self.inputs.recv().await {
                    Some(Input::Paused) => return Ok(()),
                    Some(_) => {}
                    None => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            }
        };
        tokio::time::timeout(PAUSED, paused).await?
    }

    /// Reads the terminal again.
    pub fn unpause(&mut self) {
        // If nobody reads it, the terminal is gone, which is told as an input.
        let _: io::Result<()> = self.wishes.write_all(CONTINUE);
    }

    /// Restores the terminal and stops the process group until somebody continues it. Called from the main thread,
    /// which receives the signal, so nothing runs before the stop.
    pub fn suspend(&self) -> io::Result<()> {
        self.mode.restore();
        let stopped = kill_current_process_group(Signal::TSTP);
        self.mode.take()?;
        Ok(stopped?)
    }

    /// Shows the other screen of the terminal from now on.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn show_full_screen(&self, has_mouse: bool) -> io::Result<()> {
        self.mode.full.is_wanted.store(true, Ordering::SeqCst);
        self.mode.full.has_mouse.store(has_mouse, Ordering::SeqCst);
        self.mode.take()
    }

    /// Names the frames that have to end before the screen is given back after a panic.
    pub fn expect_frames(&self, stopper: Stopper) {
        // There is one painter for each terminal.
        let _: Result<(), Stopper> = self.mode.full.frames.set(stopper);
    }

    /// Drops output that the terminal has not taken yet, so that a terminal that takes nothing cannot hold the program.
    pub fn drop_output(&self) {
        drop_output();
    }

    /// Gives the terminal back.
    pub fn restore(&self) {
        self.mode.restore();
    }

    /// Sets up the terminal again after another program has used it.
    pub fn retake(&self) -> io::Result<()> {
        self.mode.restore();
        self.mode.take()
    }
}

fn drop_output() {
    let out = io::stdout();
    // A terminal that is gone has nothing to drop. Dropping alone does not wake up the thread that waits for room, but
    // stopping and starting the output does.
    let _: rustix::io::Result<()> = tcflush(&out, QueueSelector::OFlush)
        .and_then(|()| tcflow(&out, Action::OOff))
        .and_then(|()| tcflow(&out, Action::OOn));
}

/// The thread that reads. It waits without a clock, for the terminal or for a discard request; only the rest of a split
/// sequence has a time limit.
struct Reader {
    sender: mpsc::Sender<Input>,
    asked: PipeReader,
    parser: Parser,
    burst: Burst,
    /// The last discard request that was completed.
    granted: u64,
}

/// The next task of the reader.
enum Ready {
    Keys,
    Wishes,
    /// Nothing came in time.
    Quiet,
    /// Nobody reads keys any more.
    Over,
}

impl Reader {
    fn run(mut self) {
        loop {
            let limit = self.parser.is_waiting().then_some(ESCAPE);
            let done = match self.wait(limit) {
                Ok(Ready::Over) => return,
                Ok(Ready::Wishes) => self.discard(),
                Ok(Ready::Keys) => self.read_keys(),
                Ok(Ready::Quiet) => self.parser.flush().map_or(Ok(()), |typed| self.send(typed)),
                Err(error) => Err(error),
            };
            if done.is_err() {
                // Nobody is left to tell if this fails.
                let _: Result<(), _> = self.sender.blocking_send(Input::Gone);
                return;
            }
        }
    }

    fn wait(&self, limit: Option<Duration>) -> io::Result<Ready> {
        let stdin = io::stdin();
        let limit = limit.and_then(|limit| limit.try_into().ok());
        loop {
            let mut waiting = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&self.asked, PollFlags::IN)];
            match rustix::event::poll(&mut waiting, limit.as_ref()) {
                Ok(0) => return Ok(Ready::Quiet),
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [keys, wishes] = waiting.map(|waiting| waiting.revents());
            if wishes.contains(PollFlags::IN) {
                return Ok(Ready::Wishes);
            }
            if !wishes.is_empty() {
                return Ok(Ready::Over);
            }
            // A terminal that is gone is readable for ever.
            if keys.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if keys.contains(PollFlags::IN) {
                return Ok(Ready::Keys);
            }
        }
    }

    fn discard(&mut self) -> io::Result<()> {
        let mut wish = [0];
        self.asked.read_exact(&mut wish)?;
        if wish == *PAUSE {
            self.parser.clear();
            self.tell(Input::Paused)?;
            while wish != *CONTINUE {
                self.asked.read_exact(&mut wish)?;
            }
            return Ok(());
        }
        tcflush(io::stdin(), QueueSelector::IFlush)?;
        self.parser.clear();
        self.granted += 1;
        self.tell(Input::Discarded(self.granted))
    }

    fn read_keys(&mut self) -> io::Result<()> {
        let bytes = read_some()?;
        let is_paste = self.burst.is_paste(&bytes, std::time::Instant::now());
        if is_paste && !self.parser.is_waiting() && !self.parser.is_within_paste() {
            let pasted = self.rest_of_paste(bytes)?;
            self.burst.ended(std::time::Instant::now());
            return self.send(Parser::unmarked_paste(&pasted));
        }
        let mut typed = Vec::new();
        self.parser.push(&bytes, |one| typed.push(one));
        typed.into_iter().try_for_each(|typed| self.send(typed))
    }

    /// A terminal passes a long paste on in pieces.
    fn rest_of_paste(&self, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        while bytes.len() < PASTE_BYTES && matches!(self.wait(Some(PIECE))?, Ready::Keys) {
            bytes.extend(read_some()?);
        }
        Ok(bytes)
    }

    fn tell(&self, input: Input) -> io::Result<()> {
        self.sender.blocking_send(input).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn send(&self, typed: Typed) -> io::Result<()> {
        let input = match typed {
            Typed::Key(key) => Input::Key(key, Instant::now()),
            Typed::Mouse(mouse) => Input::Mouse(mouse),
            Typed::Focus(is_here) => Input::Focus(is_here),
            Typed::Background(red, green, blue) => Input::Background(red, green, blue),
        };
        self.tell(input)
    }
}

/// Reads what has been typed.
fn read_some() -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; READ_BYTES];
    let count = rustix::io::retry_on_intr(|| rustix::io::read(io::stdin(), &mut bytes))?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes.truncate(count);
    Ok(bytes)
}

/// The settings of the terminal while the chat uses it. Copies share them.
#[derive(Debug, Clone)]
struct TerminalMode {
    has_pastes: bool,
    /// Opens the terminal for control sequences.
    out: fn() -> io::Stdout,
    full: Arc<FullScreen>,
}

/// The other screen of the terminal.
#[derive(Debug, Default)]
struct FullScreen {
    is_wanted: AtomicBool,
    has_mouse: AtomicBool,
    /// Whether it is shown, so that it is left once.
    is_shown: AtomicBool,
    frames: OnceLock<Stopper>,
}

impl TerminalMode {
    /// Sets up the terminal. A partial failure is undone.
    fn take(&self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        let mut sequences = String::new();
        if self.full.is_wanted.load(Ordering::SeqCst) && !self.full.is_shown.swap(true, Ordering::SeqCst) {
            sequences.push_str("\x1b[?1049h\x1b[22;0t\x1b[2J\x1b[?1004h");
        }
        if self.full.has_mouse.load(Ordering::SeqCst) {
            sequences.push_str("\x1b[?1002h\x1b[?1006h");
        }
        if self.has_pastes {
            sequences.push_str("\x1b[?2004h");
        }
        self.write(&sequences).inspect_err(|_| self.restore())
    }

    /// Restores the terminal. Errors do not matter if the terminal is gone.
    fn restore(&self) {
        let mut sequences = String::new();
        if self.has_pastes {
            sequences.push_str("\x1b[?2004l");
        }
        if self.full.has_mouse.load(Ordering::SeqCst) {
            sequences.push_str("\x1b[?1006l\x1b[?1002l");
        }
        if self.full.is_shown.swap(false, Ordering::SeqCst) {
            sequences.push_str("\x1b[?1004l\x1b[0m\x1b[?25h\x1b[23;0t\x1b[?1049l");
        }
        let _: io::Result<()> = self.write(&sequences);
        let _: io::Result<()> = terminal::disable_raw_mode();
    }

    /// Restores the terminal in the middle of anything: a frame that is being written ends on the screen that it is for.
    fn restore_after_panic(&self) {
        if self.full.frames.get().is_some_and(|frames| !frames.stop()) {
            drop_output();
        }
        self.restore();
    }

    fn write(&self, sequences: &str) -> io::Result<()> {
        let mut out = (self.out)();
        out.write_all(sequences.as_bytes())?;
        out.flush()
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
        let mode = TerminalMode { has_pastes: !is_dumb, out, full: Arc::default() };
        let (tell, chat) = (std::panic::take_hook(), std::thread::current().id());
        let shared = mode.clone();
        std::panic::set_hook(Box::new(move |panic| {
            if std::thread::current().id() == chat {
                shared.restore_after_panic();
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
