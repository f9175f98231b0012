//! Compares the filter with `seccompiler`, which compiles the same refusals in its own way.

use std::collections::BTreeMap;

use proptest::prelude::*;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use super::super::*;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE_NAME: TargetArch = TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE_NAME: TargetArch = TargetArch::aarch64;
#[cfg(target_arch = "riscv64")]
const ARCHITECTURE_NAME: TargetArch = TargetArch::riscv64;

/// Sets of conditions, one of which has to hold as a whole.
type Alternatives = Vec<Vec<SeccompCondition>>;

fn compared(condition: &Condition, operator: SeccompCmpOp, value: u32) -> SeccompCondition {
    let argument = u8::try_from(condition.argument).unwrap();
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into()).unwrap()
}

/// Expresses a condition with the operators of `seccompiler`, which cannot test a masked value for inequality.
fn alternatives(condition: &Condition) -> Alternatives {
    let Condition { mask, values, .. } = condition;
    let masked = |value| compared(condition, SeccompCmpOp::MaskedEq((*mask).into()), value);
    if condition.holds_for_listed {
        return values.iter().map(|value| vec![masked(*value)]).collect();
    }
    if *mask == u32::MAX {
        return vec![values.iter().map(|value| compared(condition, SeccompCmpOp::Ne, *value)).collect()];
    }
    if values == &[0] {
        let bits = (0..32).map(|bit| 1 << bit).filter(|bit| mask & bit != 0);
        return bits.map(|bit| vec![compared(condition, SeccompCmpOp::MaskedEq(bit.into()), bit)]).collect();
    }
    (0..=*mask).filter(|value| !values.contains(value)).map(|value| vec![masked(value)]).collect()
}

fn rules(refusal: &Refusal) -> Vec<SeccompRule> {
    let all = refusal.conditions.iter().map(alternatives).reduce(|one, other| {
        let both = |left: &Vec<SeccompCondition>, right: &Vec<SeccompCondition>| [left.clone(), right.clone()].concat();
        one.iter().flat_map(|left| other.iter().map(move |right| both(left, right))).collect()
    });
    all.unwrap_or_default().into_iter().map(|conditions| SeccompRule::new(conditions).unwrap()).collect()
}

/// A `seccompiler` program that traps where the refusal applies.
fn theirs(refusal: &Refusal) -> BpfProgram {
    let rules = BTreeMap::from([(refusal.call, rules(refusal))]);
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trap, ARCHITECTURE_NAME).unwrap().try_into().unwrap()
}

/// Runs a program as the kernel would.
fn run(program: &[(u16, u8, u8, u32)], call: u32, arguments: [u64; 6]) -> u32 {
    let (mut at, mut register) = (0, 0);
    loop {
        let (code, yes, no, k) = program[at];
        at += 1;
        let branch = |holds| usize::from(if holds { yes } else { no });
        match code {
            0x20 => {
                register = match k {
                    CALL => call,
                    ARCHITECTURE => NATIVE,
                    k => (arguments[((k - ARGUMENTS) / 8) as usize] >> (8 * (k % 8))) as u32,
                }
            }
            0x54 => register &= k,
            0x05 => at += k as usize,
            0x15 => at += branch(register == k),
            0x25 => at += branch(register > k),
            0x35 => at += branch(register >= k),
            0x06 => return k,
            other => panic!("unknown instruction {other:#x}"),
        }
    }
}

fn all_needs() -> impl Iterator<Item = Needs> {
    (0..8).map(|bits| Needs {
        network: bits & 1 != 0,
        shared_with_outside: bits & 2 != 0,
        metadata_is_judged: bits & 4 != 0,
    })
}

/// A program as both crates produce it: code, jumps and value of each instruction.
type Program = Vec<(u16, u8, u8, u32)>;

struct Pair {
    ours: Program,
    theirs: Vec<(Refusal, Program)>,
}

impl Pair {
    fn new(needs: Needs) -> Self {
        let theirs = |refusal: Refusal| {
            let program = theirs(&refusal).iter().map(|it| (it.code, it.jt, it.jf, it.k)).collect();
            (refusal, program)
        };
        Self {
            ours: program(needs).iter().map(|it| (it.code, it.jt, it.jf, it.k)).collect(),
            theirs: refusals(needs).into_iter().map(theirs).collect(),
        }
    }

    fn check(&self, call: c_long, arguments: [u64; 6]) {
        let of_call = self.theirs.iter().filter(|(refusal, _)| refusal.call == call);
        let holds = |program: &[_]| run(program, call as u32, arguments) == libc::SECCOMP_RET_TRAP;
        let expected = of_call.into_iter().find(|(_, program)| holds(program)).map(|(refusal, _)| refusal.answer);
        let ours = run(&self.ours, call as u32, arguments);
        assert_eq!(ours, expected.unwrap_or(libc::SECCOMP_RET_ALLOW), "call {call} {arguments:?}");
    }
}

/// Values around the boundaries of some condition, with anything in the upper half.
fn argument() -> impl Strategy<Value = u64> {
    let conditions = all_needs().flat_map(refusals).flat_map(|refusal| refusal.conditions);
    let mut telling: Vec<u32> = conditions.flat_map(|it| [it.values, vec![it.mask]].concat()).collect();
    telling.sort_unstable();
    telling.dedup();
    let near =
        (proptest::sample::select(telling), 0..3_u32).prop_map(|(value, off)| value.wrapping_add(off).wrapping_sub(1));
    let low = prop_oneof![near, any::<u32>(), (0..32_u32).prop_map(|bit| 1 << bit), Just(0)];
    (low, prop_oneof![Just(0), any::<u32>()]).prop_map(|(low, high)| u64::from(high) << 32 | u64::from(low))
}

#[test]
fn both_compilers_answer_alike_when_no_argument_is_set() {
    for pair in all_needs().map(Pair::new) {
        for call in 0..700 {
            pair.check(call, [0; 6]);
            pair.check(call, [u64::MAX; 6]);
        }
    }
}

#[test]
fn both_compilers_answer_alike_for_telling_arguments() {
    let pairs: Vec<Pair> = all_needs().map(Pair::new).collect();
    let conditional = |pair: &Pair| {
        let calls = pair.theirs.iter().filter(|(refusal, _)| !refusal.conditions.is_empty());
        calls.map(|(refusal, _)| refusal.call).collect::<Vec<_>>()
    };
    let calls: Vec<c_long> = pairs.iter().flat_map(conditional).collect();
    let inputs = (0..pairs.len(), proptest::sample::select(calls), proptest::array::uniform6(argument()));
    proptest!(ProptestConfig::with_cases(4096), |((pair, call, arguments) in inputs)| {
        pairs[pair].check(call, arguments);
    });
}
