//! Messages from the processes of a command to the server, through pipes.

#![allow(clippy::cast_possible_truncation, reason = "there are never that many places")]

use rustix::io::Errno;

use crate::error::Step;
use crate::launch::Exit;

/// A failed step, and the place it concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Failure {
    pub(super) step: Step,
    pub(super) errno: Errno,
    pub(super) place: u32,
}

impl Failure {
    pub(super) const NO_PLACE: u32 = u32::MAX;
    pub(super) const SIZE: usize = 12;

    pub(super) fn of(step: Step) -> impl Fn(Errno) -> Self {
        move |errno| Self { step, errno, place: Self::NO_PLACE }
    }

    pub(super) fn at(step: Step, place: usize) -> impl Fn(Errno) -> Self {
        move |errno| Self { step, errno, place: place as u32 }
    }

    pub(super) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        let fields = [self.step as u32, self.errno.raw_os_error().cast_unsigned(), self.place];
        for (slot, field) in bytes.chunks_exact_mut(4).zip(fields) {
            slot.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let mut fields =
            bytes.chunks_exact(4).map(|field| u32::from_le_bytes([field[0], field[1], field[2], field[3]]));
        let step = *Step::ALL.get(fields.next()? as usize)?;
        let errno = Errno::from_raw_os_error(fields.next()?.cast_signed());
        Some(Self { step, errno, place: fields.next()? })
    }
}

/// The outcome of a command as the server receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) exit: Exit,
    /// Only processes that are already exiting are left of the command, so nobody needs to wait for them.
    pub(super) is_all: bool,
    pub(super) is_out_of_memory: bool,
}

impl End {
    pub(super) const SIZE: usize = 8;

    pub(super) fn to_bytes(self) -> [u8; Self::SIZE] {
        let (kind, value) = match self.exit {
            Exit::Code(code) => (0_u8, code),
            Exit::Signal(signal) => (1, signal),
        };
        let [a, b, c, d] = value.to_le_bytes();
        [kind, u8::from(self.is_all), u8::from(self.is_out_of_memory), 0, a, b, c, d]
    }

    pub(super) fn from_bytes(bytes: [u8; Self::SIZE]) -> Self {
        let [kind, is_all, is_out_of_memory, _, a, b, c, d] = bytes;
        let value = i32::from_le_bytes([a, b, c, d]);
        let exit = if kind == 0 { Exit::Code(value) } else { Exit::Signal(value) };
        Self { exit, is_all: is_all != 0, is_out_of_memory: is_out_of_memory != 0 }
    }
}
