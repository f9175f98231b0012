//! Finds agents that write the same file of a shared folder at the same time.
//!
//! It does no I/O. Work that is handed over is no conflict: an agent may change files that the agents above it wrote before
//! its turn began, and files of agents below it that are done.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use codex_wire::agent::AgentId;

/// The number of files that are remembered; with more, all are forgotten.
const MOST_FILES: usize = 20_000;

/// The place of another agent in the tree, as seen from the one that writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Above,
    Below { is_at_work: bool },
    Beside { is_at_work: bool },
}

/// The files that agents have written.
#[derive(Debug, Default)]
pub(crate) struct Writers {
    /// The agents that have written a file, each with the time of its last write.
    files: HashMap<PathBuf, Vec<(AgentId, u64)>>,
    /// The times at which the turns of agents began.
    began: HashMap<AgentId, u64>,
    told: HashSet<(PathBuf, AgentId, AgentId)>,
    now: u64,
}

impl Writers {
    /// Notes that a turn of an agent begins.
    pub(crate) fn begin_turn(&mut self, agent: AgentId) {
        self.now += 1;
        self.began.insert(agent, self.now);
    }

    /// Notes that an agent has written a file. Returns the other agents that write it too, once for each pair and file.
    pub(crate) fn wrote(
        &mut self,
        agent: AgentId,
        path: &Path,
        place: impl Fn(AgentId) -> Option<Place>,
    ) -> Vec<AgentId> {
        self.now += 1;
        if self.files.len() >= MOST_FILES {
            self.files.clear();
            self.told.clear();
        }
        let began = self.began.get(&agent).copied().unwrap_or(0);
        let writers = self.files.entry(path.to_owned()).or_default();
        let conflicts = |(other, at): &(AgentId, u64)| {
            let is_recent = *at >= began;
            *other != agent
                && place(*other).is_some_and(|place| match place {
                    Place::Above => is_recent,
                    Place::Below { is_at_work } => is_at_work,
                    Place::Beside { is_at_work } => is_at_work || is_recent,
                })
        };
        let found: Vec<AgentId> = writers.iter().filter(|write| conflicts(write)).map(|(other, _)| *other).collect();
        writers.retain(|(writer, _)| *writer != agent);
        writers.push((agent, self.now));
        let is_new = |other: &AgentId| {
            let pair = (agent.min(*other), agent.max(*other));
            self.told.insert((path.to_owned(), pair.0, pair.1))
        };
        found.into_iter().filter(is_new).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: AgentId = AgentId::ROOT;
    const ONE: AgentId = AgentId(1);
    const TWO: AgentId = AgentId(2);

    /// Plays lines such as `1 begins`, `1 writes a`, `1 ends`, and returns the warnings.
    #[track_caller]
    fn check(script: &[&str], expected: &[(u64, u64)]) {
        let mut writers = Writers::default();
        let mut at_work = HashSet::new();
        let mut warned = Vec::new();
        for line in script {
            let mut words = line.split(' ');
            let agent = AgentId(words.next().unwrap().parse().unwrap());
            match (words.next().unwrap(), words.next()) {
                ("begins", _) => {
                    at_work.insert(agent);
                    writers.begin_turn(agent);
                }
                ("ends", _) => _ = at_work.remove(&agent),
                (_, file) => {
                    let place = |other: AgentId| {
                        let is_at_work = at_work.contains(&other);
                        Some(match (agent, other) {
                            (_, ROOT) => Place::Above,
                            (ROOT, _) => Place::Below { is_at_work },
                            _ => Place::Beside { is_at_work },
                        })
                    };
                    let others = writers.wrote(agent, Path::new(file.unwrap()), place);
                    warned.extend(others.iter().map(|other| (agent.0, other.0)));
                }
            }
        }
        assert_eq!(warned, expected, "{script:?}");
    }

    #[test]
    fn two_agents_at_work_on_one_file_are_told_once() {
        let both = ["1 begins", "2 begins", "1 writes a", "2 writes a", "1 writes a", "2 writes b", "1 writes b"];
        check(&both, &[(2, 1), (1, 2)]);
        check(&["1 begins", "1 writes a", "2 begins", "2 writes a"], &[(2, 1)]);
        check(&["1 begins", "2 begins", "1 writes a", "1 ends", "2 writes a"], &[(2, 1)]);
        check(&["1 begins", "0 writes a", "1 writes a"], &[(1, 0)]);
        check(&["1 begins", "1 writes a", "0 writes a"], &[(0, 1)]);
    }

    #[test]
    fn work_that_is_handed_over_is_no_conflict() {
        check(&["0 writes a", "1 begins", "1 writes a", "1 ends", "0 writes a"], &[]);
        check(&["1 begins", "1 writes a", "1 ends", "2 begins", "2 writes a"], &[]);
        check(&["1 begins", "2 begins", "1 writes a", "2 writes b"], &[]);
        check(&["1 begins", "1 writes a", "1 writes a"], &[]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut writers = Writers::default();
        for file in 0..MOST_FILES + 10 {
            for agent in [ONE, TWO] {
                writers.wrote(agent, Path::new(&file.to_string()), |_| Some(Place::Beside { is_at_work: true }));
            }
        }
        assert!(writers.files.len() <= MOST_FILES && writers.told.len() <= MOST_FILES);
    }
}
