//! The goal as a machine: which goals may be set, the turns that they start, and the end of those turns.

use super::*;

fn wish(objective: &str) -> GoalChange {
    GoalChange { objective: Some(objective.to_owned()), ..GoalChange::default() }
}

fn status(status: GoalStatus) -> GoalChange {
    GoalChange { status: Some(status), ..GoalChange::default() }
}

fn budget(tokens: i64) -> GoalChange {
    GoalChange { token_budget: Some(Some(tokens)), ..GoalChange::default() }
}

/// An idle thread with a new goal.
fn state(change: GoalChange) -> GoalState {
    let mut state = GoalState::default();
    state.set(change, false, 10).expect("the test's goal is right");
    state
}

/// Plays a turn that the goal started, in which the model sends this message, after a call or without one.
fn own_turn(state: &mut GoalState, acts: bool, said: &str) -> Option<String> {
    assert!(state.is_due(), "{state:?}");
    state.next_step();
    state.begin_turn();
    state.begin_own();
    state.note();
    if acts {
        state.act();
    }
    state.end_turn(TurnEnd::Completed(Some(said)), 20)
}

fn is(state: &GoalState) -> GoalStatus {
    state.goal().expect("there is a goal").status
}

#[test]
fn an_invalid_goal_is_refused_with_a_reason() {
    let long = "é".repeat(LONGEST_OBJECTIVE + 1);
    for (change, complaint) in [
        (wish(" \n"), "the objective must not be empty"),
        (wish(&long), "the objective has 4001 characters, 4000 are allowed"),
        (GoalChange { token_budget: Some(Some(0)), ..wish("x") }, "the token budget must be at least 1, not 0"),
        (GoalChange { token_budget: Some(Some(-5)), ..wish("x") }, "the token budget must be at least 1, not -5"),
        (status(GoalStatus::Active), "the thread has no goal; set one with an objective"),
        (budget(5), "the thread has no goal; set one with an objective"),
        (GoalChange::default(), "the thread has no goal; set one with an objective"),
    ] {
        let mut state = GoalState::default();
        assert_eq!(state.set(change, false, 10).unwrap_err().to_string(), complaint);
        assert!(state.goal().is_none() && state.take_changed().is_none() && !state.is_due());
    }
    assert!(state(wish(&"é".repeat(LONGEST_OBJECTIVE))).is_due());
}

#[test]
fn a_wrong_change_leaves_the_goal_as_it_was() {
    let mut state = state(wish("ship it"));
    let before = state.goal().cloned();
    assert!(state.set(budget(0), false, 11).is_err());
    assert_eq!(state.goal().cloned(), before);
}

#[test]
fn another_objective_is_a_new_goal_and_the_same_one_is_not() {
    let mut state = state(GoalChange { token_budget: Some(Some(100)), ..wish("one") });
    state.begin_turn();
    state.count(40, 11);
    let same = state.set(GoalChange { status: Some(GoalStatus::Paused), ..wish(" one ") }, true, 12).unwrap();
    assert_eq!((same.tokens_used, same.token_budget, same.status), (40, Some(100), GoalStatus::Paused));
    assert_eq!((same.created_at, same.updated_at), (10, 12));
    let other = state.set(wish("two"), true, 13).unwrap();
    assert_eq!((other.tokens_used, other.token_budget, other.status), (0, None, GoalStatus::Active));
    assert_eq!((other.created_at, other.updated_at), (13, 13));
    state.report(GoalStatus::Complete, 14);
    let again = state.set(wish("two"), true, 15).unwrap();
    assert_eq!((again.status, again.created_at), (GoalStatus::Active, 15), "what is reached can be wanted again");
}

#[test]
fn a_budget_can_be_set_left_and_taken_away() {
    let mut state = state(wish("x"));
    assert_eq!(state.set(budget(7), false, 11).unwrap().token_budget, Some(7));
    assert_eq!(state.set(status(GoalStatus::Paused), false, 12).unwrap().token_budget, Some(7));
    let none = GoalChange { token_budget: Some(None), ..GoalChange::default() };
    assert_eq!(state.set(none, false, 13).unwrap().token_budget, None);
}

#[test]
fn nothing_changes_where_nothing_is_asked_for() {
    let mut state = state(wish("x"));
    state.take_changed().expect("it is new");
    let same = state.set(GoalChange::default(), false, 99).unwrap();
    assert_eq!((same.updated_at, state.take_changed()), (10, None));
}

#[test]
fn a_budget_that_is_used_up_ends_it_until_there_is_a_larger_one() {
    let mut state = state(GoalChange { token_budget: Some(Some(100)), ..wish("x") });
    state.begin_turn();
    assert!(!state.count(99, 11));
    assert!(state.count(1, 12));
    assert_eq!(is(&state), GoalStatus::BudgetLimited);
    assert!(!state.count(50, 13), "what comes later is not counted");
    state.end_turn(TurnEnd::Completed(None), 14);
    assert!(!state.is_due());
    let error = state.set(status(GoalStatus::Active), false, 15).unwrap_err();
    assert_eq!(error, GoalError::BudgetUsedUp { budget: 100 });
    assert_eq!(state.set(budget(200), false, 16).unwrap().status, GoalStatus::BudgetLimited, "a budget starts nothing");
    assert!(!state.is_due());
    let goal = state.set(status(GoalStatus::Active), false, 17).unwrap();
    assert_eq!((goal.tokens_used, state.is_due()), (100, true));
    assert_eq!(state.set(budget(50), false, 18).unwrap().status, GoalStatus::BudgetLimited);
    assert!(!state.is_due());
}

#[test]
fn tokens_are_counted_in_turns_while_it_is_active_and_never_wrap() {
    let mut state = state(wish("x"));
    state.count(5, 11);
    assert_eq!(state.goal().unwrap().tokens_used, 0, "nothing runs");
    state.begin_turn();
    for tokens in [i64::MAX, i64::MAX, -7] {
        state.count(tokens, 12);
    }
    assert_eq!(state.goal().unwrap().tokens_used, i64::MAX);
}

#[tokio::test(start_paused = true)]
async fn time_is_counted_in_turns_while_it_is_active() {
    let mut state = state(wish("x"));
    let advance = |seconds| tokio::time::advance(std::time::Duration::from_secs(seconds));
    advance(100).await;
    state.begin_turn();
    advance(3).await;
    state.set(status(GoalStatus::Paused), true, 11).unwrap();
    advance(100).await;
    state.set(status(GoalStatus::Active), true, 12).unwrap();
    advance(4).await;
    state.end_turn(TurnEnd::Completed(Some("a")), 13);
    advance(100).await;
    assert_eq!(state.goal().unwrap().time_used_ms, 7_000);
}

#[test]
fn a_turn_that_does_nothing_new_is_the_last() {
    let mut state = state(wish("x"));
    own_turn(&mut state, false, "I will look.");
    own_turn(&mut state, true, "I will look.");
    own_turn(&mut state, false, "I have looked.");
    own_turn(&mut state, false, " I have looked. ");
    assert_eq!((is(&state), state.is_due()), (GoalStatus::Blocked, false));
}

#[test]
fn silence_and_endless_talk_are_nothing_new() {
    let mut silent = state(wish("x"));
    own_turn(&mut silent, false, "  ");
    assert_eq!(is(&silent), GoalStatus::Blocked);
    let mut talker = state(wish("x"));
    for number in 0..MOST_IDLE_TURNS {
        own_turn(&mut talker, false, &format!("thought {number}"));
    }
    assert_eq!(is(&talker), GoalStatus::Blocked);
}

#[test]
fn no_goal_continues_forever_without_input() {
    let mut state = state(wish("x"));
    for turn in 1..MOST_OWN_TURNS {
        assert_eq!(own_turn(&mut state, true, "more"), None, "turn {turn}");
    }
    let warning = own_turn(&mut state, true, "more").expect("the user is told");
    assert!(warning.contains("200 turns in a row"), "{warning}");
    assert_eq!((is(&state), state.is_due()), (GoalStatus::Paused, false));
}

#[test]
fn user_input_restarts_the_count() {
    let mut state = state(wish("x"));
    for _ in 1..MOST_OWN_TURNS {
        own_turn(&mut state, true, "more");
    }
    state.begin_turn();
    state.person_spoke();
    state.note();
    assert_eq!(state.end_turn(TurnEnd::Completed(Some("more")), 20), None, "what a person asks for is never idle");
    assert_eq!(own_turn(&mut state, true, "more"), None);
    assert_eq!(is(&state), GoalStatus::Active);
}

#[test]
fn each_end_of_a_turn_has_its_consequence() {
    for (end, expected, goes_on) in [
        (TurnEnd::Completed(Some("a")), GoalStatus::Active, true),
        (TurnEnd::Replaced, GoalStatus::Active, true),
        (TurnEnd::Left, GoalStatus::Active, false),
        (TurnEnd::UsageLimited, GoalStatus::UsageLimited, false),
        (TurnEnd::Stopped, GoalStatus::Paused, false),
    ] {
        let mut state = state(wish("x"));
        state.next_step();
        state.begin_turn();
        state.begin_own();
        state.note();
        state.end_turn(end, 20);
        assert_eq!((is(&state), state.is_due()), (expected, goes_on), "{end:?}");
    }
}

#[test]
fn a_turn_without_a_model_starts_nothing() {
    let mut state = GoalState::resumed(state(wish("x")).goal().cloned(), true);
    state.begin_turn();
    state.end_turn(TurnEnd::Completed(None), 20);
    assert!(!state.is_due(), "the user has run a command");
}

#[test]
fn a_goal_of_before_waits_and_is_nothing_to_clients_that_know_none() {
    let goal = state(wish("x")).goal().cloned();
    let mut followed = GoalState::resumed(goal.clone(), true);
    assert!(!followed.is_due());
    assert!(followed.note().is_some_and(|text| text.contains("\n\nx\n\n")), "it is told anew");
    let mut ignored = GoalState::resumed(goal, false);
    ignored.begin_turn();
    assert_eq!(ignored.note(), None);
    ignored.count(5, 11);
    ignored.end_turn(TurnEnd::Completed(Some("a")), 20);
    assert!(!ignored.is_due() && ignored.take_changed().is_none());
}

#[test]
fn a_file_cannot_hold_a_goal_that_could_not_have_been_set() {
    let goal = state(wish("x")).goal().cloned().expect("there is a goal");
    for objective in [String::new(), "x".repeat(LONGEST_OBJECTIVE + 1)] {
        assert!(GoalState::resumed(Some(Goal { objective, ..goal.clone() }), true).goal().is_none());
    }
}

#[test]
fn the_model_is_informed_once_per_change() {
    let mut state = state(wish("ship it"));
    assert!(state.note().expect("it is new").contains("ship it"));
    assert_eq!(state.note(), None);
    state.set(budget(1000), false, 11).unwrap();
    assert!(state.note().expect("the budget is new").contains("1000"));
    state.set(status(GoalStatus::Paused), false, 12).unwrap();
    assert_eq!(state.note().as_deref(), Some(PUT_ASIDE));
    assert_eq!(state.note(), None);
    state.set(status(GoalStatus::Active), false, 13).unwrap();
    assert!(state.note().is_some());
    state.begin_turn();
    state.count(1000, 14);
    assert_eq!(state.note().as_deref(), Some(BUDGET_USED_UP));
    state.start_over();
    assert_eq!(state.note(), None, "there is nothing to work towards");
    state.clear();
    assert_eq!(state.note(), None);
}

#[test]
fn the_model_is_not_informed_of_its_own_report() {
    let mut state = state(wish("x"));
    state.note();
    assert!(state.report(GoalStatus::Complete, 11));
    assert_eq!((state.note(), state.is_due()), (None, false));
    assert!(!state.report(GoalStatus::Blocked, 12), "it is over");
    assert_eq!(is(&state), GoalStatus::Complete);
}
