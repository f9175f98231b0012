//! Random trees: calls, turns, failures and crashes in any order.

use std::ops::Range;

use codex_wire::agent::{AgentId, SubagentOrigin};
use codex_wire::ids::ThreadId;
use fastrand::Rng;

use super::world::World;
use crate::tree::{AwaitRequest, Input, Limits, PruneRequest, Request, SendRequest, SpawnRequest, Target, TurnEnd};

/// The number of trees that are played. `CODEX_TEST_TREES` sets another number, for a long run, or a range of seeds.
const TREES: u64 = 1_000;
const STEPS: usize = 160;
/// One of this many trees is large: it has room for 64 agents, and most calls start one.
const LARGE: u64 = 40;
const LARGE_STEPS: usize = 1_200;

/// Trees that have broken a rule once.
const KNOWN: [u64; 5] = [8_651, 27_520, 47_811, 64_685, 74_522];

#[test]
fn no_message_is_lost_no_slot_is_kept_and_every_agent_ends() {
    for seed in KNOWN.into_iter().chain(seeds()) {
        let played = std::panic::catch_unwind(|| play(seed));
        assert!(played.is_ok(), "the tree of seed {seed} broke a rule");
    }
}

fn seeds() -> Range<u64> {
    let Ok(wanted) = std::env::var("CODEX_TEST_TREES") else { return 0..TREES };
    let (first, end) = wanted.split_once("..").unwrap_or(("0", &wanted));
    let number = |text: &str| text.parse().expect("`CODEX_TEST_TREES` is a number or a range like 100..200");
    number(first)..number(end)
}

fn play(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let is_large = seed.is_multiple_of(LARGE);
    let active = if is_large || rng.u8(..4) == 0 { 64 } else { rng.usize(1..12) };
    let depth = if is_large { 3 } else { rng.u32(1..4) };
    let turns = if is_large { rng.usize(8..65) } else { rng.usize(1..9) };
    let mut world = World::new(Limits { active, depth, turns, wakes_root: rng.u8(..4) > 0 });
    if is_large {
        fill(&mut world, &mut rng);
    }
    for _ in 0..if is_large { LARGE_STEPS } else { STEPS } {
        step(&mut world, &mut rng);
    }
    world.settle();
    world.check_settled();
    if rng.bool() {
        world.crash();
        world.settle();
        world.check_settled();
    }
}

/// Starts agents on all levels until every slot is taken.
fn fill(world: &mut World, rng: &mut Rng) {
    world.begin_turn(AgentId::ROOT);
    for _ in 0..10_000 {
        if world.tree.active() == 64 {
            let deepest = world.tree.agents().map(|agent| agent.depth).max();
            assert_eq!(deepest, Some(3), "there are agents on all levels");
            return;
        }
        let depth = |agent: AgentId| world.tree.agent(agent).map_or(0, |agent| agent.depth);
        let busy = world.sessions.iter().filter(|(_, session)| session.has_turn).map(|(agent, _)| *agent);
        let busy: Vec<AgentId> = busy.filter(|agent| depth(*agent) < 3).collect();
        let deepest = busy.iter().copied().max_by_key(|agent| depth(*agent));
        let Some(caller) = deepest.filter(|_| rng.bool()).or_else(|| rng.choice(busy)) else { return };
        let (thread, origin) = (ThreadId::fresh(), SubagentOrigin::Spawn);
        let prompt = Some("look".to_owned());
        world.report_read(caller);
        let new = SpawnRequest { thread, origin, prompt, label: None, task: None, role: None };
        world.call(caller, Request::Spawn(new));
        for agent in world.launching.clone() {
            world.launch(agent, None);
            world.obey(agent);
        }
    }
    panic!("there are only {} agents", world.tree.active());
}

fn step(world: &mut World, rng: &mut Rng) {
    let agents: Vec<AgentId> = world.sessions.keys().copied().collect();
    let Some(agent) = rng.choice(agents) else { return };
    match rng.u8(..100) {
        0..30 => match world.sessions.get(&agent) {
            Some(session) if session.has_turn => call(world, rng, agent),
            Some(_) if agent == AgentId::ROOT => world.begin_turn(agent),
            _ => world.obey(agent),
        },
        30..50 => world.obey(agent),
        50..62 => {
            if let Some(launching) = rng.choice(world.launching.clone()) {
                // The policies may have changed, so that a question is not asked again.
                if rng.u8(..8) == 0 {
                    world.asking.remove(&launching);
                }
                world.launch(launching, (rng.u8(..12) == 0).then_some("no room"));
            }
        }
        62..70 => {
            // An agent reads its mail before it asks its model, so never while it calls.
            if !world.waiting.values().any(|waiting| *waiting == agent) {
                world.read_mail(agent);
            }
            if rng.bool() {
                world.report_read(agent);
            }
        }
        70..86 => {
            let end = match rng.u8(..5) {
                0 => TurnEnd::Failed { message: "broken".to_owned() },
                1 => TurnEnd::Aborted,
                _ => TurnEnd::Completed { last_message: Some("done".to_owned()) },
            };
            world.end_turn(agent, end);
        }
        86..90 => {
            world.now_ms += rng.i64(0..600_000);
            world.input(Input::Tick);
        }
        90 => world.input(Input::Heard { agent }),
        91 => world.input(Input::Header { agent, header: "Reading".to_owned() }),
        92..94 => world.ask(agent),
        94..96 => world.lose(agent),
        96..98 => {
            let waiting: Vec<_> = world.waiting.keys().copied().collect();
            if let Some(call) = rng.choice(waiting) {
                world.waiting.remove(&call);
                world.input(Input::CallDropped(call));
            }
        }
        98 => world.crash(),
        _ => world.effects_left = Some(rng.usize(..6)),
    }
}

fn call(world: &mut World, rng: &mut Rng, caller: AgentId) {
    // A call of an agent that waits cannot be.
    if world.waiting.values().any(|waiting| *waiting == caller) {
        return;
    }
    // Both come through the same channel.
    world.report_read(caller);
    let newest = world.tree.agents().last().map_or(0, |agent| agent.id().0);
    let agent = AgentId(rng.u64(0..newest + 3));
    let text = || Some("look".to_owned());
    let request = match rng.u8(..26) {
        0..9 => {
            let is_fork = rng.u8(..4) == 0;
            let origin = if is_fork { SubagentOrigin::Fork } else { SubagentOrigin::Spawn };
            let prompt = if is_fork && rng.bool() { None } else { text() };
            let task = (rng.u8(..3) == 0).then(|| format!("task_{}", rng.u8(..6)));
            let (thread, label, role) = (ThreadId::fresh(), None, None);
            Request::Spawn(SpawnRequest { thread, origin, prompt, label, task, role })
        }
        9..14 => {
            let interrupt = rng.u8(..3) == 0;
            let prompt = if rng.u8(..4) == 0 { None } else { text() };
            let is_quiet = !interrupt && rng.u8(..3) == 0;
            Request::Send(SendRequest { agent, prompt, label: None, interrupt, is_quiet })
        }
        14..17 => {
            let agents = if rng.bool() { vec![agent] } else { Vec::new() };
            let target = *rng.choice(&[Target::MailOrEnd, Target::End, Target::AnyMail]).expect("there are three");
            Request::Await(AwaitRequest { agents, timeout_ms: 300_000, target })
        }
        17..19 => Request::Cancel { agent, reason: text() },
        19..21 => {
            let agents = if rng.bool() { Some(vec![agent, AgentId(2)]) } else { None };
            Request::Prune(PruneRequest { agents, completed_only: rng.bool() })
        }
        21 => Request::Close(agent),
        22 => Request::Reopen(agent),
        23 => Request::Find(format!("task_{}", rng.u8(..6))),
        24 => Request::ListBelow(rng.bool().then(|| "/root/task_1".to_owned())),
        _ => Request::Watch { agent, interval_s: 30, message: None, is_canceled: rng.bool() },
    };
    world.call(caller, request);
}
