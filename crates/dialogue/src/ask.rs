//! Dialogues before the chat starts, answered with keys.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;

use tokio::time::Instant;

use crate::keys::{Input, Key, Keys};
use crate::question::Readiness;
use crate::screen::{Footer, Screen};

/// The way a chat ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatEnd {
    /// The user quit.
    ByChoice,
    /// A signal arrived, or the terminal is gone.
    ByForce,
}

/// Completes when the program has to stop. Nothing waits for it again after that.
pub type StopSignal = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A dialogue, without a terminal.
pub trait Dialogue {
    type Answer;

    fn footer(&self) -> Footer;

    /// Handles a key. An answer ends it, and so does leaving.
    fn press(&mut self, key: &Key) -> Option<Result<Self::Answer, ChatEnd>>;
}

/// Shows the dialogue, and waits for the answer. A key counts only if it was pressed after the choices were shown.
pub async fn ask<W: Write, D: Dialogue>(
    dialogue: &mut D,
    screen: &mut Screen<W>,
    keys: &mut Keys,
    stop: &mut StopSignal,
) -> std::io::Result<Result<D::Answer, ChatEnd>> {
    let mut arming = Readiness::begin(Instant::now().into_std());
    let answer = loop {
        let footer = if arming.has_choices() { dialogue.footer() } else { Footer::default() };
        let now = Instant::now();
        if screen.show(Vec::new(), footer).is_err() {
            break Err(ChatEnd::ByForce);
        }
        arming.drawn(now.into_std());
        let time = async {
            match arming.deadline().map(Instant::from_std) {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = &mut *stop => break Err(ChatEnd::ByForce),
            () = time => arming.wake(Instant::now().into_std(), || keys.discard()),
            input = keys.next() => match input {
                Input::Gone => break Err(ChatEnd::ByForce),
                // If this fails, so does the next drawing.
                Input::Resized => {
                    crossterm::terminal::size().and_then(|size| screen.resize(size)).unwrap_or_default();
                }
                Input::Continued => {
                    let taken = keys.retake().and_then(|()| screen.come_back());
                    taken.unwrap_or_default();
                }
                Input::Discarded(number) => arming.discarded(number),
                Input::Key(key, at) if arming.pressed(at.into_std()) => {
                    if let Some(answer) = dialogue.press(&key) {
                        break answer;
                    }
                }
                Input::Key(..) | Input::Mouse(_) | Input::Focus(_) | Input::Background(..) | Input::Paused => {}
            },
        }
    };
    if !matches!(answer, Err(ChatEnd::ByForce)) {
        screen.finish()?;
    }
    Ok(answer)
}
