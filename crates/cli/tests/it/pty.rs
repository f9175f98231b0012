//! The program in a pseudo-terminal, without a screen: its output is read as a stream.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::program::Place;

/// The time to wait for output before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time after which the reader checks whether to stop.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// The program in a terminal. It is killed when dropped.
pub(crate) struct Pty {
    child: Child,
    master: Option<File>,
    /// The reader thread, and the flag that stops it.
    reading: Option<(JoinHandle<()>, Arc<AtomicBool>)>,
    /// The other end, held open so that the last output can be read.
    end: OwnedFd,
    output: Receiver<Vec<u8>>,
    /// The raw output.
    pub(crate) raw: Vec<u8>,
    /// The length of the text that was already checked.
    seen: usize,
}

/// The output of the program when it ended, and its exit status.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) text: String,
    pub(crate) raw: Vec<u8>,
}

impl Pty {
    /// Starts the program in a terminal of 80 columns and 24 rows.
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        let master =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("there is a terminal");
        grantpt(&master).and_then(|()| unlockpt(&master)).expect("it can be used");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let path = name.to_str().expect("it is text");
        let end = File::options().read(true).write(true).open(path).expect("it can be opened");
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&end, size).expect("it has a size");
        let copy = || Stdio::from(end.try_clone().expect("it can be shared"));
        let mut command = place.command(args);
        // A separate process group, so that stopping the group does not stop the test.
        command.process_group(0);
        let child = command.stdin(copy()).stdout(copy()).stderr(copy()).spawn().expect("the program starts");
        let master = File::from(master);
        let mut reader = master.try_clone().expect("it can be shared");
        let (sender, output) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&is_over);
        let reading = thread::spawn(move || {
            let mut piece = [0; 4096];
            while !until.load(Ordering::SeqCst) {
                let mut waiting = [PollFd::new(&reader, PollFlags::IN)];
                if poll(&mut waiting, Some(&GLANCE)) == Ok(0) {
                    continue;
                }
                match reader.read(&mut piece) {
                    Ok(read @ 1..) if sender.send(piece[..read].to_vec()).is_ok() => {}
                    _ => return,
                }
            }
        });
        let reading = Some((reading, is_over));
        Self { child, master: Some(master), reading, end: end.into(), output, raw: Vec::new(), seen: 0 }
    }

    /// Types keys.
    pub(crate) fn send(&mut self, keys: &str) {
        let master = self.master.as_mut().expect("the terminal is there");
        master.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Takes no more output, like a terminal that is held.
    pub(crate) fn stop_reading(&mut self) {
        if let Some((reading, is_over)) = self.reading.take() {
            is_over.store(true, Ordering::SeqCst);
            reading.join().expect("the reader ends");
        }
    }

    /// The number of bytes that wait to be read.
    pub(crate) fn unread(&self) -> u64 {
        rustix::io::ioctl_fionread(self.master.as_ref().expect("the terminal is there")).expect("it can be asked")
    }

    /// Hangs up, like a window that is closed, and waits for the end of the program.
    #[track_caller]
    pub(crate) fn hang_up(&mut self) -> Option<i32> {
        self.stop_reading();
        self.master = None;
        self.wait_unread()
    }

    /// Waits for the end of the program without reading its output.
    #[track_caller]
    pub(crate) fn wait_unread(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it does not end");
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Waits until a text is shown that was not checked yet, and returns everything before it.
    #[track_caller]
    pub(crate) fn until(&mut self, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let text = plain(&self.raw);
            if let Some(at) = text[self.seen..].find(wanted) {
                let before = text[self.seen..self.seen + at].to_owned();
                self.seen += at + wanted.len();
                return before;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let piece = self.output.recv_timeout(left);
            let in_vain = |_| panic!("waited in vain for {wanted:?} behind {} in\n{text}", self.seen);
            self.raw.extend(piece.unwrap_or_else(in_vain));
        }
    }

    /// Whether the terminal is in the mode in which a shell leaves it: lines are edited and echoed by the system.
    pub(crate) fn is_restored(&self) -> bool {
        let modes = tcgetattr(&self.end).expect("the terminal is there").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it is there");
    }

    fn pid(&self) -> Pid {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("it has an id")
    }

    /// Waits until the program is stopped.
    #[track_caller]
    pub(crate) fn until_stopped(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
            let changed = waitpid(Some(self.pid()), options).expect("it can be waited for");
            if changed.is_some_and(|(_, status)| status.stopped()) {
                return;
            }
            assert!(Instant::now() < deadline, "it does not stop");
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        loop {
            while let Ok(piece) = self.output.try_recv() {
                self.raw.extend(piece);
            }
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                // The last output may still be in the terminal: our marker comes after it.
                File::from(self.end.try_clone().expect("it can be shared")).write_all(b"\x04END").expect("it writes");
                while !self.raw.ends_with(b"\x04END") {
                    self.raw.extend(self.output.recv_timeout(PATIENCE).expect("the mark comes"));
                }
                self.raw.truncate(self.raw.len() - 4);
                return Ended { code: status.code(), text: plain(&self.raw), raw: self.raw.clone() };
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", plain(&self.raw));
            if let Ok(piece) = self.output.recv_timeout(Duration::from_millis(20)) {
                self.raw.extend(piece);
            }
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // It may have ended already.
        let _: std::io::Result<()> = self.child.kill();
        let _: std::io::Result<std::process::ExitStatus> = self.child.wait();
    }
}

/// The text of the output: without control sequences and carriage returns.
pub(crate) fn plain(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => {}
            '\x1b' => {
                if rest.next() == Some('[') {
                    rest.by_ref().find(|c| ('@'..='~').contains(c));
                }
            }
            c => plain.push(c),
        }
    }
    plain
}
