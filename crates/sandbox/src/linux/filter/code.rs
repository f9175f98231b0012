//! An assembler for the kernel's filter language, as far as a list of refusals needs it.
//!
//! Invariant: every instruction that is written later can reach every place that was returned.

#![allow(clippy::cast_possible_truncation, reason = "programs have a few hundred instructions")]

use std::collections::BTreeMap;

use libc::sock_filter as Instruction;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
pub(super) const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// An instruction of [`Code`], counted from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

/// A program, written from its end to its start: jumps only lead forward, so their targets are already written.
#[derive(Default)]
pub(super) struct Code {
    reversed: Vec<Instruction>,
    answers: BTreeMap<u32, Place>,
}

impl Code {
    fn push(&mut self, code: u16, k: u32, jt: u8, jf: u8) -> Place {
        self.reversed.push(Instruction { code, jt, jf, k });
        self.last()
    }

    /// The instruction that was written last, which is the first to run so far.
    fn last(&self) -> Place {
        Place(self.reversed.len() - 1)
    }

    /// Ends with an answer. There is one place for each answer.
    pub(super) fn answer(&mut self, answer: u32) -> Place {
        if let Some(place) = self.answers.get(&answer) {
            return *place;
        }
        let place = self.push(RETURN, answer, 0, 0);
        self.answers.insert(answer, place);
        place
    }

    /// Compares the loaded value, and continues at one of two places.
    pub(super) fn branch(&mut self, code: u16, k: u32, yes: Place, no: Place) -> Place {
        let (yes, no) = (self.near(yes), self.near(no));
        let distance = |place: Place| (self.reversed.len() - place.0 - 1) as u8;
        self.push(code, k, distance(yes), distance(no))
    }

    /// A place within reach of a branch: a jump if the target itself is too far away.
    fn near(&mut self, place: Place) -> Place {
        /// A branch offset goes up to 255, and the jump for its other side may be in between.
        const FAR: usize = 250;
        let distance = self.reversed.len() - place.0;
        if distance > FAR { self.push(JUMP, distance as u32 - 1, 0, 0) } else { place }
    }

    /// Loads the value that `next`, which was written last, tests.
    pub(super) fn load(&mut self, what: u32, next: Place) -> Place {
        debug_assert_eq!(next, self.last(), "what is loaded is asked about at once");
        self.push(LOAD, what, 0, 0)
    }

    /// Masks the loaded value for `next`.
    pub(super) fn mask(&mut self, bits: u32, next: Place) -> Place {
        debug_assert_eq!(next, self.last(), "what is masked is asked about at once");
        self.push(AND, bits, 0, 0)
    }

    /// Finds the range that contains the loaded number: each extends to the start of the next.
    pub(super) fn search(&mut self, ranges: &[(u32, Place)]) -> Place {
        let (below, above) = ranges.split_at(ranges.len() / 2);
        match (below, above) {
            ([], [(_, place)]) => *place,
            (_, [(first, _), ..]) => {
                let yes = self.search(above);
                let no = self.search(below);
                self.branch(IF_AT_LEAST, *first, yes, no)
            }
            (_, []) => self.answer(libc::SECCOMP_RET_KILL_PROCESS),
        }
    }

    pub(super) fn finish(mut self) -> Vec<Instruction> {
        self.reversed.reverse();
        self.reversed
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Runs a program as the kernel does, and returns its answer.
    pub(in super::super) fn run(program: &[Instruction], load: impl Fn(u32) -> u32, loaded: u32) -> u32 {
        let (mut at, mut register) = (0, loaded);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            let branch = |holds| usize::from(if holds { jt } else { jf });
            match code {
                LOAD => register = load(k),
                AND => register &= k,
                JUMP => at += k as usize,
                IF_EQUAL => at += branch(register == k),
                IF_AT_LEAST => at += branch(register >= k),
                RETURN => return k,
                other => panic!("unknown instruction {other}"),
            }
        }
    }

    #[test]
    fn a_place_too_far_for_a_branch_is_reached_by_a_jump() {
        let mut code = Code::default();
        let [far, other] = [1, 2].map(|answer| code.answer(answer));
        let mut next = other;
        for value in 0..600 {
            next = code.branch(IF_EQUAL, value, far, next);
        }
        assert!(code.reversed.iter().filter(|it| it.code == JUMP).count() >= 2);
        let program = code.finish();
        for (loaded, expected) in [(0, 1), (599, 1), (300, 1), (600, 2)] {
            assert_eq!(run(&program, |_| loaded, loaded), expected, "{loaded}");
        }
    }
}
