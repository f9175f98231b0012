use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn agents(count: usize) -> Vec<Agent> {
    std::iter::once(None).chain((1..count).map(|_| Some(ThreadId::fresh()))).collect()
}

/// Lets all requests run that may, and returns them.
fn admitted(queue: &mut RequestQueue, now: Instant) -> Vec<u64> {
    std::iter::from_fn(|| queue.next(now, 0)).map(|ticket| ticket.0).collect()
}

#[test]
fn the_root_is_first_and_the_others_take_turns() {
    let agents = agents(3);
    let (mut queue, now) = (RequestQueue::new(1), Instant::now());
    queue.enter(agents[1], Ticket(1));
    assert_eq!(admitted(&mut queue, now), [1]);
    for ticket in 2..5 {
        queue.enter(agents[1], Ticket(ticket));
    }
    queue.enter(agents[2], Ticket(5));
    queue.enter(agents[0], Ticket(6));
    let mut order = Vec::new();
    let mut running = 1;
    while running != 0 {
        queue.leave(Ticket(running));
        running = admitted(&mut queue, now).first().copied().unwrap_or(0);
        order.push(running);
    }
    assert_eq!(order, [6, 2, 5, 3, 4, 0], "the root, then one request of each agent");
}

#[test]
fn requests_wait_together_and_go_on_in_order() {
    let agents = agents(3);
    let (mut queue, now) = (RequestQueue::new(2), Instant::now());
    queue.enter(agents[1], Ticket(1));
    queue.enter(agents[2], Ticket(2));
    assert_eq!(admitted(&mut queue, now), [1, 2]);
    // The first one is refused and waits again, with all others.
    queue.leave(Ticket(1));
    queue.hold(now + Duration::from_secs(9));
    queue.hold(now + Duration::from_secs(5));
    queue.enter(agents[1], Ticket(1));
    queue.enter(agents[0], Ticket(3));
    queue.leave(Ticket(2));
    assert_eq!(admitted(&mut queue, now + Duration::from_secs(8)), [0_u64; 0]);
    assert_eq!(queue.due(), Some(now + Duration::from_secs(9)));
    assert_eq!(admitted(&mut queue, now + Duration::from_secs(9)), [3, 1]);
    assert_eq!(queue.due(), None);
}

#[test]
fn requests_outside_of_the_queue_take_places() {
    let (mut queue, now) = (RequestQueue::new(2), Instant::now());
    for ticket in 1..4 {
        queue.enter(Some(ThreadId::fresh()), Ticket(ticket));
    }
    assert_eq!(queue.next(now, 1), Some(Ticket(1)));
    assert_eq!(queue.next(now, 1), None);
    assert_eq!(queue.next(now, 0), Some(Ticket(2)));
}

/// A step of random requests.
#[derive(Debug, Clone)]
enum Step {
    Enter(usize),
    /// One that runs is over.
    End(usize),
    /// One that waits is canceled.
    Cancel(usize),
    /// One that runs is refused, and waits again.
    Refuse(usize),
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6_usize).prop_map(Step::Enter),
        4 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => any::<usize>().prop_map(Step::Refuse),
        2 => Just(Step::Pass),
    ]
}

/// A queue, and what a reader of its invariants knows about it.
struct World {
    queue: RequestQueue,
    most: usize,
    agents: Vec<Agent>,
    now: Instant,
    held_until: Instant,
    next: u64,
    owner: BTreeMap<u64, usize>,
    running: BTreeSet<u64>,
    waiting: BTreeSet<u64>,
    /// The number of requests of other agents, without the root, that went before each agent that waits.
    overtaken: BTreeMap<usize, usize>,
}

impl World {
    fn new(most: usize) -> Self {
        let now = Instant::now();
        Self {
            queue: RequestQueue::new(most),
            most,
            agents: agents(6),
            now,
            held_until: now,
            next: 0,
            owner: BTreeMap::new(),
            running: BTreeSet::new(),
            waiting: BTreeSet::new(),
            overtaken: BTreeMap::new(),
        }
    }

    fn pick(set: &BTreeSet<u64>, number: usize) -> Option<u64> {
        set.iter().nth(number.checked_rem(set.len())?).copied()
    }

    fn enter(&mut self, agent: usize, ticket: u64) {
        self.queue.enter(self.agents[agent], Ticket(ticket));
        self.owner.insert(ticket, agent);
        self.waiting.insert(ticket);
        self.overtaken.entry(agent).or_insert(0);
    }

    fn leave(&mut self, ticket: u64) {
        self.queue.leave(Ticket(ticket));
        self.running.remove(&ticket);
        self.waiting.remove(&ticket);
    }

    fn play(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Enter(agent) => {
                self.next += 1;
                self.enter(*agent, self.next);
            }
            Step::End(number) => {
                if let Some(ticket) = Self::pick(&self.running, *number) {
                    self.leave(ticket);
                }
            }
            Step::Cancel(number) => {
                if let Some(ticket) = Self::pick(&self.waiting, *number) {
                    self.leave(ticket);
                    prop_assert!(!self.queue.is_waiting(Ticket(ticket)), "a canceled one leaves at once");
                }
            }
            Step::Refuse(number) => {
                if let Some(ticket) = Self::pick(&self.running, *number) {
                    self.leave(ticket);
                    self.held_until = self.now + Duration::from_secs(3);
                    self.queue.hold(self.held_until);
                    self.enter(self.owner[&ticket], ticket);
                }
            }
            Step::Pass => self.now += Duration::from_secs(2),
        }
        self.overtaken.retain(|agent, _| self.waiting.iter().any(|ticket| self.owner[ticket] == *agent));
        self.admit()
    }

    fn admit(&mut self) -> Result<(), TestCaseError> {
        while let Some(Ticket(ticket)) = self.queue.next(self.now, 0) {
            prop_assert!(self.now >= self.held_until, "nobody goes on before the time");
            prop_assert!(self.waiting.remove(&ticket), "only who waits is admitted, and once");
            let agent = self.owner[&ticket];
            let root_waits = self.waiting.iter().any(|other| self.owner[other] == 0);
            prop_assert!(agent == 0 || !root_waits, "the root goes first");
            self.running.insert(ticket);
            prop_assert!(self.running.len() <= self.most, "never more than {}", self.most);
            self.overtaken.remove(&agent);
            if self.waiting.iter().any(|other| self.owner[other] == agent) {
                self.overtaken.insert(agent, 0);
            }
            for (other, count) in self.overtaken.iter_mut().filter(|(other, _)| agent != 0 && **other != agent) {
                *count += 1;
                prop_assert!(*other == 0 || *count <= self.agents.len(), "agent {other} starves");
            }
        }
        let is_held = self.now < self.held_until;
        prop_assert!(self.waiting.is_empty() || is_held || self.running.len() == self.most, "a place stays free");
        Ok(())
    }
}

proptest! {
    #[test]
    fn nobody_starves_and_never_too_many_run(
        most in 1..5_usize,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut world = World::new(most);
        for step in &steps {
            world.play(step)?;
        }
        // When all that run end and time passes, everybody who waits gets a place.
        while !world.waiting.is_empty() || !world.running.is_empty() {
            world.now += Duration::from_secs(3);
            world.admit()?;
            let running: Vec<u64> = world.running.iter().copied().collect();
            for ticket in running {
                world.leave(ticket);
            }
        }
        prop_assert_eq!((world.queue.running, world.queue.waiting.len()), (0, 0));
    }
}
