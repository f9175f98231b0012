//! Single rules, one test each.

use codex_log::agents::{AgentEvent, AgentsState, UnnumberedChild};
use codex_tools::agents::ChildStarted;
use codex_wire::agent::{AgentId, SubagentCompletion, SubagentLifecycleEvent, SubagentOrigin, SubagentStatus};
use codex_wire::ids::ThreadId;

use super::world::World;
use crate::tree::{
    AgentError, AwaitRequest, CallNumber, Effect, Input, Limits, PruneRequest, Reply, Request, SendRequest,
    SpawnRequest, Target, Tree, TurnEnd, WatchAction, summarized,
};

const ROOT: AgentId = AgentId::ROOT;
const ONE: AgentId = AgentId(1);
const TWO: AgentId = AgentId(2);

fn spawn(prompt: &str) -> Request {
    Request::Spawn(new_agent(prompt))
}

fn new_agent(prompt: &str) -> SpawnRequest {
    let (thread, origin, prompt) = (ThreadId::fresh(), SubagentOrigin::Spawn, Some(prompt.to_owned()));
    SpawnRequest { thread, origin, prompt, label: None, task: None, role: None }
}

/// A new agent with a name.
fn named(task: &str) -> Request {
    Request::Spawn(SpawnRequest { task: Some(task.to_owned()), ..new_agent("look at it") })
}

fn send(agent: AgentId, prompt: Option<&str>, interrupt: bool) -> Request {
    Request::Send(SendRequest { agent, prompt: prompt.map(str::to_owned), label: None, interrupt, is_quiet: false })
}

fn wait(agents: &[AgentId]) -> Request {
    Request::Await(AwaitRequest { agents: agents.to_vec(), timeout_ms: 300_000, target: Target::MailOrEnd })
}

fn error(world: &World, call: CallNumber) -> AgentError {
    world.reply_to(call).expect("there is a reply").clone().expect_err("it is an error")
}

fn done() -> TurnEnd {
    TurnEnd::Completed { last_message: Some("done".to_owned()) }
}

/// A world with a root at work.
fn world(limits: Limits) -> World {
    let mut world = World::new(limits);
    world.begin_turn(ROOT);
    world
}

/// Starts a child that works.
fn child(world: &mut World, caller: AgentId) -> AgentId {
    world.call(caller, spawn("look at it"));
    let agent = *world.launching.last().expect("it is being launched");
    world.launch(agent, None);
    world.obey(agent);
    agent
}

fn status(world: &World, agent: AgentId) -> SubagentStatus {
    world.tree.agent(agent).expect("it is there").status().clone()
}

#[test]
fn bad_calls_change_nothing_and_say_what_is_wrong() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    let told = world.told.len();
    let labelled = |label: String| Request::Spawn(SpawnRequest { label: Some(label), ..new_agent("p") });
    let long = "x".repeat(1024 * 1024);
    let cases = [
        (spawn("  "), AgentError::EmptyPrompt),
        (labelled(long), AgentError::LongLabel(1024 * 1024)),
        (send(AgentId(7), Some("hi"), false), AgentError::NotFound(AgentId(7))),
        (send(ROOT, Some("hi"), false), AgentError::ToItself),
        (send(ONE, None, false), AgentError::NothingToSay),
        (send(ONE, Some(""), true), AgentError::EmptyPrompt),
        (Request::Cancel { agent: TWO, reason: None }, AgentError::NotFound(TWO)),
        (Request::Prune(PruneRequest { agents: Some(Vec::new()), completed_only: true }), AgentError::NothingToPrune),
        (Request::Watch { agent: ONE, interval_s: 29, message: None, is_canceled: false }, AgentError::ShortInterval),
    ];
    for (request, expected) in cases {
        let call = world.call(ROOT, request);
        assert_eq!(error(&world, call), expected);
    }
    assert_eq!(world.told.len(), told, "a log was told something");
}

#[test]
fn waits_are_300_to_1800_seconds_long() {
    let seconds = |timeout_s| AwaitRequest::seconds(Vec::new(), timeout_s).map(|wait| wait.timeout_ms / 1000);
    assert_eq!(seconds(None), Ok(1800));
    assert_eq!(seconds(Some(0)), Ok(1800));
    assert_eq!(seconds(Some(299)), Err(AgentError::ShortTimeout));
    assert_eq!(seconds(Some(300)), Ok(300));
    assert_eq!(seconds(Some(1801)), Err(AgentError::LongTimeout));
    assert!(AgentError::ShortTimeout.to_string().contains("at least 300 seconds"));
}

#[test]
fn a_child_is_told_of_in_the_order_that_clients_know() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    let told: Vec<String> = world
        .told
        .iter()
        .filter_map(|(log, event)| match event {
            AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change)) => {
                Some(format!("{log} {}", change.status.as_str()))
            }
            AgentEvent::Lifecycle(event) => Some(format!("{log} {}", event.kind())),
            AgentEvent::Inbox(change) => Some(format!("{log} inbox {}", change.inbox.pending_messages)),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["0 created", "0 inbox 0", "0 running"]);
}

#[test]
fn a_summary_is_the_beginning_of_the_prompt_on_one_line() {
    assert_eq!(summarized(" look \n at\tit ").as_deref(), Some("look at it"));
    assert_eq!(summarized(" \n "), None);
    let fits = "ä".repeat(80);
    assert_eq!(summarized(&fits), Some(fits.clone()));
    assert_eq!(summarized(&format!("{fits}b")), Some(format!("{fits}…")));
    assert_eq!(summarized(&format!("{fits} b")), Some(format!("{fits}…")));
}

#[test]
fn a_slot_is_free_with_the_end_of_a_task() {
    let mut world = world(Limits { active: 1, ..Limits::default() });
    child(&mut world, ROOT);
    let refused = world.call(ROOT, spawn("more"));
    assert_eq!(error(&world, refused), AgentError::NoSlot(1));
    world.end_turn(ONE, done());
    assert_eq!(child(&mut world, ROOT), TWO);
    let refused = world.call(ROOT, send(ONE, Some("again"), false));
    assert_eq!(error(&world, refused), AgentError::NoSlot(1), "a new task needs a slot too");
}

#[test]
fn nesting_has_an_end() {
    let mut world = world(Limits { depth: 1, ..Limits::default() });
    child(&mut world, ROOT);
    let refused = world.call(ONE, spawn("deeper"));
    assert_eq!(error(&world, refused), AgentError::TooDeep(1));
}

#[test]
fn a_wait_ends_with_the_result_which_is_told_once() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    let call = world.call(ROOT, wait(&[]));
    assert!(world.reply_to(call).is_none());
    world.end_turn(ONE, done());
    let Some(Ok(Reply::Awaited(awaited))) = world.reply_to(call).cloned() else { panic!("it ends") };
    let completion = SubagentCompletion::Completed { last_message: Some("done".to_owned()) };
    assert_eq!(awaited.agent.as_ref().and_then(|agent| agent.completion.clone()), Some(completion));
    assert!(world.sessions[&ROOT].inbox.is_empty(), "the result was told by the call");
    let again = world.call(ROOT, wait(&[ONE]));
    assert!(matches!(world.reply_to(again), Some(Ok(Reply::Awaited(awaited))) if awaited.is_over), "it is told again");
}

#[test]
fn a_wait_times_out_and_ends_when_its_turn_is_stopped() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    let call = world.call(ROOT, wait(&[ONE]));
    world.now_ms += 300_000;
    world.input(Input::Tick);
    assert!(matches!(world.reply_to(call), Some(Ok(Reply::Awaited(awaited))) if awaited.is_timed_out));
    let call = world.call(ROOT, wait(&[ONE]));
    world.end_turn(ROOT, TurnEnd::Aborted);
    world.end_turn(ONE, done());
    assert!(world.reply_to(call).is_none(), "nobody waits any more");
}

#[test]
fn an_interrupt_goes_first_and_is_no_end() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    world.call(ROOT, send(ONE, Some("later"), false));
    world.call(ROOT, send(ONE, Some("now"), true));
    world.obey(ONE);
    assert_eq!(status(&world, ONE), SubagentStatus::Running, "it was woken again");
    assert!(world.tree.agent(ONE).is_some_and(|agent| agent.completion.is_none()));
    assert!(world.sessions[&ROOT].inbox.is_empty(), "nothing has ended");
}

/// The turn may begin or go on before its thread sees that it is to be stopped.
#[test]
fn an_interrupt_is_read_by_the_next_turn_also_if_the_agent_was_just_woken() {
    for is_woken in [false, true] {
        let mut world = world(Limits::default());
        child(&mut world, ROOT);
        if is_woken {
            world.end_turn(ONE, done());
            world.call(ROOT, send(ONE, Some("later"), false));
        }
        world.call(ROOT, send(ONE, Some("now"), true));
        world.read_mail(ONE);
        for _ in 0..4 {
            world.obey(ONE);
        }
        assert_eq!(status(&world, ONE), SubagentStatus::Running, "{is_woken}");
        let session = &world.sessions[&ONE];
        assert!(session.has_turn && session.inbox.is_empty(), "{is_woken}: {session:?}");
    }
}

/// A turn that is stopped would lose the mail that its wait returns.
#[test]
fn a_wait_of_an_agent_that_is_to_be_stopped_takes_no_mail() {
    let mut world = world(Limits::default());
    let one = child(&mut world, ROOT);
    let two = child(&mut world, one);
    let call = world.call(one, wait(&[two]));
    world.call(ROOT, send(one, Some("now"), true));
    world.end_turn(two, done());
    assert!(world.reply_to(call).is_none());
    world.now_ms += 400_000;
    assert_eq!(world.tree.due_ms(), None);
    for _ in 0..3 {
        world.obey(one);
    }
    assert_eq!(status(&world, one), SubagentStatus::Running);
    world.settle();
    world.check_settled();
}

#[test]
fn a_cancellation_takes_the_subtree_and_names_the_reason() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    child(&mut world, ONE);
    let call = world.call(ROOT, Request::Cancel { agent: ONE, reason: Some("too slow".to_owned()) });
    let Some(Ok(Reply::Agent(view))) = world.reply_to(call) else { panic!("it is canceled") };
    assert_eq!((view.reason.as_deref(), &view.summary.status), (Some("too slow"), &SubagentStatus::Canceled));
    assert_eq!(status(&world, TWO), SubagentStatus::Canceled);
    assert_eq!(world.tree.active(), 0);
}

#[test]
fn only_agents_above_and_below_can_be_addressed() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    child(&mut world, ROOT);
    let foreign = world.call(ONE, send(TWO, Some("psst"), false));
    assert_eq!(error(&world, foreign), AgentError::Foreign(TWO));
    let itself = world.call(ONE, send(ONE, Some("note"), false));
    assert_eq!(error(&world, itself), AgentError::ToItself);
    let interrupt = world.call(ONE, send(ROOT, Some("stop"), true));
    assert_eq!(error(&world, interrupt), AgentError::InterruptsRoot);
    world.call(ONE, send(ROOT, Some("found it"), false));
    assert_eq!(world.sessions[&ROOT].inbox.len(), 1);
}

#[test]
fn a_full_inbox_refuses_more() {
    let mut world = world(Limits::default());
    world.call(ROOT, spawn("first"));
    for _ in 0..255 {
        world.call(ROOT, send(ONE, Some("more"), false));
    }
    let refused = world.call(ROOT, send(ONE, Some("more"), false));
    assert_eq!(error(&world, refused), AgentError::Full(ONE));
    let interrupt = world.call(ROOT, send(ONE, Some("more"), true));
    assert_eq!(error(&world, interrupt), AgentError::Full(ONE), "there is no way around it");
    assert_eq!(world.tree.agent(ONE).map(|agent| agent.inbox.len()), Some(256));
}

#[test]
fn an_inbox_holds_a_megabyte() {
    let mut world = world(Limits::default());
    world.call(ROOT, spawn("first"));
    let half = "x".repeat(512 * 1024);
    world.call(ROOT, send(ONE, Some(&half), false));
    let told = world.told.len();
    let refused = world.call(ROOT, send(ONE, Some(&half), false));
    assert_eq!(error(&world, refused), AgentError::Full(ONE));
    assert!(AgentError::Full(ONE).to_string().contains("256 messages or 1048576 bytes"));
    assert_eq!(world.told.len(), told, "nothing has changed");
    let smaller = "x".repeat(512 * 1024 - "first".len());
    let fits = world.call(ROOT, send(ONE, Some(&smaller), false));
    assert!(matches!(world.reply_to(fits), Some(Ok(_))), "{:?}", world.reply_to(fits));
    let full = world.call(ROOT, send(ONE, Some("x"), false));
    assert_eq!(error(&world, full), AgentError::Full(ONE));
}

#[test]
fn a_watchdog_rings_until_it_is_canceled() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    let watch = |is_canceled| Request::Watch { agent: ONE, interval_s: 30, message: None, is_canceled };
    let action = |world: &World, call| match world.reply_to(call) {
        Some(Ok(Reply::Watch { action, .. })) => *action,
        other => panic!("{other:?}"),
    };
    let first = world.call(ROOT, watch(false));
    let second = world.call(ROOT, watch(false));
    assert_eq!((action(&world, first), action(&world, second)), (WatchAction::Started, WatchAction::Replaced));
    world.now_ms += 31_000;
    world.input(Input::Tick);
    assert_eq!(world.sessions[&ONE].inbox.len(), 1);
    let (gone, none) = (world.call(ROOT, watch(true)), world.call(ROOT, watch(true)));
    assert_eq!((action(&world, gone), action(&world, none)), (WatchAction::Canceled, WatchAction::NotFound));
    assert_eq!(world.tree.due_ms(), None);
}

#[test]
fn a_resumed_tree_marks_what_was_running_and_keeps_watchdogs_and_ids() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    child(&mut world, ROOT);
    world.end_turn(TWO, done());
    world.call(ROOT, Request::Watch { agent: ONE, interval_s: 30, message: None, is_canceled: false });
    world.crash();
    assert_eq!((status(&world, ONE), status(&world, TWO)), (SubagentStatus::Failed, SubagentStatus::Idle));
    let completion = world.tree.agent(ONE).and_then(|agent| agent.completion.clone());
    assert_eq!(completion, Some(SubagentCompletion::Failed { message: "the program ended".to_owned() }));
    assert!(world.tree.due_ms().is_some(), "the watchdog is armed");
    world.begin_turn(ROOT);
    world.call(ROOT, send(TWO, Some("again"), false));
    assert_eq!(world.launching, [TWO], "a message starts it again");
    world.call(ROOT, spawn("third"));
    assert!(world.tree.agent(AgentId(3)).is_some(), "no number is given out twice");
}

#[test]
fn turns_wait_for_their_turn_but_waits_do_not_count() {
    let mut world = world(Limits { turns: 1, ..Limits::default() });
    child(&mut world, ROOT);
    world.call(ROOT, spawn("second"));
    world.launch(TWO, None);
    assert_eq!(status(&world, TWO), SubagentStatus::Queued);
    world.call(ONE, spawn("below"));
    world.launch(AgentId(3), None);
    world.call(ONE, wait(&[]));
    assert_eq!(status(&world, TWO), SubagentStatus::Running, "the first one waits");
    world.obey(TWO);
    world.end_turn(TWO, done());
    assert_eq!(status(&world, AgentId(3)), SubagentStatus::Running);
}

/// An agent whose wait is over continues its turn, so it needs a place, and gets the next one.
#[test]
fn no_more_turns_run_than_are_allowed_when_a_wait_ends() {
    let mut world = world(Limits { turns: 1, ..Limits::default() });
    child(&mut world, ROOT);
    let below = world.call(ONE, spawn("below"));
    world.launch(TWO, None);
    let wait = world.call(ONE, wait(&[]));
    assert_eq!(status(&world, TWO), SubagentStatus::Running, "{:?}", world.reply_to(below));
    world.obey(TWO);
    world.call(ROOT, spawn("third"));
    world.launch(AgentId(3), None);
    world.call(TWO, send(ONE, Some("half of it"), false));
    assert!(world.reply_to(wait).is_none(), "its place is taken");
    assert_eq!(world.tree.due_ms(), None, "nothing is due before there is a place");
    world.end_turn(TWO, done());
    assert!(world.reply_to(wait).is_some(), "it goes before those that have not begun");
    assert_eq!(status(&world, AgentId(3)), SubagentStatus::Queued);
    world.end_turn(ONE, done());
    assert_eq!(status(&world, AgentId(3)), SubagentStatus::Running);
}

#[test]
fn a_used_up_budget_cancels_everything_below() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    child(&mut world, ONE);
    world.input(Input::CancelBelow { agent: ROOT, reason: "no tokens".to_owned() });
    assert_eq!((status(&world, ONE), status(&world, TWO)), (SubagentStatus::Canceled, SubagentStatus::Canceled));
    let agent = world.tree.agent(ONE).expect("it is there");
    assert_eq!(agent.reason.as_deref(), Some("no tokens"));
}

#[test]
fn nothing_starts_while_the_session_ends() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    world.input(Input::Close);
    assert_eq!(status(&world, ONE), SubagentStatus::Canceled);
    let late = world.call(ROOT, spawn("late"));
    assert_eq!(error(&world, late), AgentError::Closing);
}

#[test]
fn mail_of_a_deleted_agent_outlives_a_crash() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    world.call(ONE, send(ROOT, Some("found it"), false));
    let agents = Some(vec![ONE]);
    world.call(ROOT, Request::Prune(PruneRequest { agents, completed_only: false }));
    world.crash();
    let inbox = &world.tree.agent(ROOT).expect("the root is always there").inbox;
    let texts: Vec<_> = inbox.iter().filter_map(|mail| mail.message.prompt.as_deref()).collect();
    assert_eq!(texts, ["found it"]);
}

/// A thread that cannot start is dropped, and so tells that it is gone before the result of the launch is known.
#[test]
fn a_launch_that_fails_is_told_once_and_with_its_reason() {
    let mut world = world(Limits::default());
    for (result, reason) in
        [(Err("no folder".to_owned()), "no folder"), (Ok(ChildStarted::default()), "its thread has ended")]
    {
        let call = world.call(ROOT, spawn("task"));
        let agent = *world.launching.last().expect("it is launching");
        world.input(Input::Lost { agent });
        assert!(world.reply_to(call).is_none());
        world.launching.clear();
        world.input(Input::Launched { agent, result });
        assert_eq!(error(&world, call), AgentError::Launch(reason.to_owned()));
        assert!(world.tree.agent(agent).is_none(), "it is rolled back");
    }
}

#[test]
fn paths_are_unique_and_outlive_a_crash() {
    let mut world = world(Limits::default());
    world.call(ROOT, named("tests"));
    world.launch(ONE, None);
    world.obey(ONE);
    world.call(ONE, named("unit"));
    world.launch(TWO, None);
    world.crash();
    world.begin_turn(ROOT);
    let path = |world: &World, agent| world.tree.agent(agent).map(|agent| agent.path.clone());
    assert_eq!(path(&world, ONE).as_deref(), Some("/root/tests"));
    assert_eq!(path(&world, TWO).as_deref(), Some("/root/tests/unit"));
    let told = world.told.len();
    let taken = world.call(ROOT, named("tests"));
    assert_eq!(error(&world, taken), AgentError::NameTaken("/root/tests".to_owned()));
    for name in ["", "root", "a/b", "..", "Tests", "a b", &"x".repeat(65)] {
        let call = world.call(ROOT, named(name));
        assert_eq!(error(&world, call), AgentError::BadName, "{name}");
    }
    assert_eq!((world.told.len(), world.tree.agents().count()), (told, 3), "nothing has changed");
}

#[test]
fn agents_are_found_by_whole_and_relative_paths_and_by_threads() {
    let mut world = world(Limits::default());
    for (caller, agent, name) in [(ROOT, ONE, "a"), (ONE, TWO, "b"), (ROOT, AgentId(3), "c")] {
        world.call(caller, named(name));
        world.launch(agent, None);
        world.obey(agent);
    }
    let thread = world.tree.agent(TWO).expect("it is there").thread().to_string();
    for (caller, target, expected) in [
        (ROOT, "a", Ok(ONE)),
        (ROOT, "a/b", Ok(TWO)),
        (ROOT, "/root/a/b/", Ok(TWO)),
        (ONE, "b", Ok(TWO)),
        (ONE, "/root", Ok(ROOT)),
        (TWO, "/root/a", Ok(ONE)),
        (ROOT, &*thread, Ok(TWO)),
        (ONE, "/root/c", Err(AgentError::ForeignPath("`/root/c`".to_owned()))),
        (ONE, "a", Err(AgentError::NoSuchPath("`a`".to_owned()))),
        (ROOT, "/rooted", Err(AgentError::BadPath("`/rooted`".to_owned()))),
        (ROOT, "", Err(AgentError::BadPath("``".to_owned()))),
        (ROOT, "../a", Err(AgentError::BadPath("`../a`".to_owned()))),
    ] {
        let call = world.call(caller, Request::Find(target.to_owned()));
        let found = match world.reply_to(call).expect("there is a reply").clone() {
            Ok(Reply::Agent(view)) => Ok(view.summary.agent_id),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error),
        };
        assert_eq!(found, expected, "{caller} {target}");
    }
    let call = world.call(ROOT, Request::ListBelow(Some("a".to_owned())));
    let Some(Ok(Reply::Agents(views))) = world.reply_to(call) else { panic!("a list") };
    assert_eq!(views.iter().map(|view| &*view.path).collect::<Vec<_>>(), ["/root/a", "/root/a/b"]);
    let call = world.call(ROOT, Request::Find("x".repeat(1_000_000)));
    assert!(error(&world, call).to_string().len() < 300);
}

#[test]
fn a_quiet_message_waits_for_the_next_task() {
    let mut world = world(Limits { active: 1, ..Limits::default() });
    child(&mut world, ROOT);
    world.end_turn(ONE, done());
    let quiet = |prompt: &str| {
        let prompt = Some(prompt.to_owned());
        Request::Send(SendRequest { agent: ONE, prompt, label: None, interrupt: false, is_quiet: true })
    };
    world.call(ROOT, quiet("by the way"));
    assert_eq!(status(&world, ONE), SubagentStatus::Idle);
    assert!(world.sessions[&ONE].orders.is_empty());
    world.crash();
    world.begin_turn(ROOT);
    assert_eq!(status(&world, ONE), SubagentStatus::Idle);
    world.call(ROOT, send(ONE, Some("once more"), false));
    world.launch(ONE, None);
    let texts: Vec<_> = world.sessions[&ONE].inbox.iter().filter_map(|mail| mail.message.prompt.as_deref()).collect();
    assert_eq!(texts, ["by the way", "once more"]);
}

/// A message for later is no work, so an agent that was started without any is ready all the same.
#[test]
fn an_agent_that_gets_a_quiet_message_while_it_starts_is_ready() {
    let mut world = world(Limits::default());
    world.call(ROOT, Request::Spawn(SpawnRequest { origin: SubagentOrigin::Fork, prompt: None, ..new_agent("p") }));
    let prompt = Some("by the way".to_owned());
    let quiet = SendRequest { agent: ONE, prompt, label: None, interrupt: false, is_quiet: true };
    world.call(ROOT, Request::Send(quiet));
    world.launch(ONE, None);
    assert_eq!(status(&world, ONE), SubagentStatus::Ready);
}

#[test]
fn a_wait_for_any_mail_ends_when_the_user_speaks() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    let wait = AwaitRequest { agents: Vec::new(), timeout_ms: 300_000, target: Target::AnyMail };
    let call = world.call(ROOT, Request::Await(wait));
    assert_eq!(world.reply_to(call), None);
    world.input(Input::Heard { agent: ROOT });
    let Some(Ok(Reply::Awaited(awaited))) = world.reply_to(call) else { panic!("it is over") };
    assert!(awaited.is_interrupted && !awaited.is_timed_out);
}

#[test]
fn a_closed_agent_can_be_opened_again() {
    let mut world = world(Limits::default());
    child(&mut world, ROOT);
    world.call(ROOT, Request::Close(ONE));
    assert_eq!(status(&world, ONE), SubagentStatus::Canceled);
    assert!(!world.sessions.contains_key(&ONE));
    let call = world.call(ROOT, Request::Reopen(ONE));
    world.launch(ONE, None);
    assert!(matches!(world.reply_to(call), Some(Ok(Reply::Agent(_)))));
    world.call(ROOT, send(ONE, Some("go on"), false));
    world.obey(ONE);
    assert_eq!(status(&world, ONE), SubagentStatus::Running);
}

#[test]
fn children_of_other_releases_get_numbers() {
    let thread = ThreadId::fresh();
    let state = AgentsState {
        unnumbered: vec![UnnumberedChild {
            thread,
            nickname: Some("Nash".to_owned()),
            role: Some("explorer".to_owned()),
            prompt: Some("child task\nplease".to_owned()),
            path: None,
            completion: Some(SubagentCompletion::Completed { last_message: Some("Hello".to_owned()) }),
        }],
        ..AgentsState::default()
    };
    let (tree, effects) = Tree::resume(ThreadId::fresh(), Limits::default(), &state, &mut |_, _| None, 5);
    let agent = tree.agent(ONE).expect("it has the first number");
    assert_eq!((agent.thread(), agent.status()), (thread, &SubagentStatus::Idle));
    assert_eq!(agent.summary.summary.as_deref(), Some("child task please"));
    let mut known = state;
    for effect in effects {
        if let Effect::Tell { log: ROOT, events } = effect {
            for event in &events {
                known.apply(event);
            }
        }
    }
    assert!(known.unnumbered.is_empty() && known.children.len() == 1, "the log of the root tells about it");
    assert_eq!(known.children[0].completion, agent.completion);
}

#[test]
fn an_agent_that_asked_goes_on_and_one_that_cannot_has_failed() {
    let mut world = world(Limits::default());
    let one = child(&mut world, ROOT);
    let two = child(&mut world, one);
    let three = child(&mut world, ROOT);
    world.ask(two);
    world.ask(three);
    world.crash();
    assert_eq!(status(&world, one), SubagentStatus::Failed);
    assert_eq!((status(&world, two), status(&world, three)), (SubagentStatus::Queued, SubagentStatus::Queued));
    assert_eq!(world.launching, [one, two, three], "parents come first");
    world.asking.remove(&three);
    for agent in [one, two, three] {
        world.launch(agent, None);
    }
    assert_eq!((status(&world, two), status(&world, three)), (SubagentStatus::Running, SubagentStatus::Failed));
    let told_root = world.told.iter().any(|(log, event)| {
        matches!(event, AgentEvent::Lifecycle(SubagentLifecycleEvent::Status(change))
            if *log == ROOT && change.agent_id == two && change.status == SubagentStatus::Running)
    });
    assert!(told_root, "whoever hears the root hears the question");
    world.end_turn(two, done());
    assert_eq!(status(&world, two), SubagentStatus::Idle);
    world.settle();
    world.check_settled();
}

#[test]
fn an_agent_that_is_canceled_while_it_starts_asks_nothing_again() {
    let mut world = world(Limits::default());
    let one = child(&mut world, ROOT);
    world.ask(one);
    world.crash();
    world.begin_turn(ROOT);
    world.call(ROOT, Request::Cancel { agent: one, reason: None });
    world.launch(one, None);
    assert_eq!(status(&world, one), SubagentStatus::Canceled);
    world.obey(one);
    assert!(!world.sessions.get(&one).expect("it runs").has_turn, "its turn is stopped");
    world.settle();
    world.check_settled();
}
