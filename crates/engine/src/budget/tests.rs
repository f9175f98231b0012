use proptest::prelude::*;

use super::*;

const NONE: BudgetConfig = BudgetConfig { tokens: None, cost: None, seconds: None, commands: None, requests: None };

fn own(thread: BudgetConfig, used: Used) -> Budget {
    Budget::new(Payer::Own { thread, run: NONE }, used)
}

fn told(reached: Option<BudgetReached>) -> String {
    reached.map_or_else(|| "within".to_owned(), |reached| reached.to_string())
}

#[test]
fn tokens_and_cost_may_be_used_to_the_last() {
    let mut budget = own(BudgetConfig { tokens: Some(200), cost: Some(1.0), ..NONE }, Used::default());
    budget.answered(100, 0.1);
    budget.ask().unwrap();
    budget.answered(100, 0.1);
    assert_eq!(told(budget.exceeded()), "within", "a turn that uses exactly its budget is within it");
    assert_eq!(told(budget.ask().err()), "budget of 200 tokens exhausted: 200 used");
    budget.answered(1, 0.9);
    assert_eq!(told(budget.exceeded()), "budget of 200 tokens exhausted: 201 used");
    let mut budget = own(BudgetConfig { cost: Some(1.0), ..NONE }, Used::default());
    budget.answered(100, 1.5);
    assert_eq!(told(budget.exceeded()), "budget of 1 exhausted: spent 1.5000");
}

#[test]
fn requests_and_commands_are_refused_before_they_begin() {
    let mut budget = own(BudgetConfig { commands: Some(1), requests: Some(2), ..NONE }, Used::default());
    assert_eq!((budget.ask(), budget.ask()), (Ok(()), Ok(())));
    assert_eq!(told(budget.exceeded()), "within");
    assert_eq!(told(budget.ask().err()), "budget of 2 requests exhausted: 2 used");
    budget.may_begin_command().unwrap();
    budget.command_began();
    assert_eq!(told(budget.exceeded()), "within");
    assert_eq!(told(budget.may_begin_command().err()), "budget of 1 commands exhausted: 1 used");
    // An agent below does not know the limit, and begins another one.
    budget.used_below(Used { commands: 1, ..Used::default() });
    assert_eq!(told(budget.exceeded()), "budget of 1 commands exhausted: 2 used");
}

#[test]
fn time_counts_while_the_thread_works() {
    let mut budget = own(BudgetConfig { seconds: Some(10), ..NONE }, Used::default());
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(budget.due_in(), None);
    budget.tick(at(0), true);
    assert_eq!(budget.due_in(), Some(Duration::from_secs(10)));
    budget.tick(at(4), false);
    assert_eq!(budget.due_in(), None, "it waits for a person");
    budget.tick(at(1000), true);
    assert_eq!(budget.due_in(), Some(Duration::from_secs(6)));
    budget.used_below(Used { time_ms: 5_500, ..Used::default() });
    assert_eq!(budget.due_in(), Some(Duration::from_millis(500)));
    budget.tick(at(1001), true);
    assert_eq!(told(budget.exceeded()), "budget of 10 seconds exhausted: 10.5 used");
    assert_eq!(told(budget.ask().err()), "budget of 10 seconds exhausted: 10.5 used");
    assert_eq!(budget.due_in(), Some(Duration::ZERO));
}

#[test]
fn limits_of_a_run_do_not_count_earlier_runs() {
    let before = Used { tokens: 500, ..Used::default() };
    let (thread, run) = (BudgetConfig { tokens: Some(1000), ..NONE }, BudgetConfig { tokens: Some(300), ..NONE });
    let mut budget = Budget::new(Payer::Own { thread, run }, before);
    budget.answered(301, 0.0);
    assert_eq!(told(budget.exceeded()), "budget of 300 tokens exhausted: 301 used");
    let mut budget = Budget::new(Payer::Own { thread, run: NONE }, Used { tokens: 801, ..Used::default() });
    budget.answered(200, 0.0);
    assert_eq!(told(budget.exceeded()), "budget of 1000 tokens exhausted: 1001 used");
}

#[test]
fn a_thread_without_limits_counts_only_for_those_above() {
    let alone = own(NONE, Used::default());
    assert!(!alone.is_counted());
    let mut child =
        Budget::new(Payer::Above { thread: NONE, run: BudgetConfig { seconds: Some(60), ..NONE } }, Used::default());
    assert!(child.is_counted());
    child.ask().unwrap();
    child.answered(1_000_000, 99.0);
    child.used_below(Used { tokens: 7, ..Used::default() });
    assert_eq!(told(child.exceeded()), "within", "the limits are those of an agent above");
    let charged = Used { tokens: 1_000_000, cost: 99.0, requests: 1, ..Used::default() };
    assert_eq!(child.take_uncharged(), Some(charged), "what agents below use is charged by them");
    assert_eq!((child.take_uncharged(), child.take_untold()), (None, None));
    child.tick(Instant::now(), true);
    assert_eq!(child.due_in(), Some(REPORT));
}

#[test]
fn the_log_is_told_once() {
    let mut budget = own(BudgetConfig { tokens: Some(9), ..NONE }, Used { tokens: 1, ..Used::default() });
    assert_eq!(budget.take_untold(), None, "the log of a resumed thread tells it");
    budget.answered(2, 0.0);
    let used = Some(Used { tokens: 3, ..Used::default() });
    assert_eq!((budget.take_untold(), budget.take_untold(), budget.whole()), (used, None, used));
}

fn any_used() -> impl Strategy<Value = Used> {
    (0..1000_i64, 0..1000_u32, 0..9000_u64, 0..9_u64, 0..9_u64).prop_map(
        |(tokens, cents, time_ms, commands, requests)| Used {
            tokens,
            cost: f64::from(cents) / 100.0,
            time_ms,
            commands,
            requests,
        },
    )
}

proptest! {
    /// In any order of charges, the root knows what its tree has used, and stops when it must.
    #[test]
    fn charges_add_up(parts in prop::collection::vec((any_used(), any::<bool>()), 0..40), most in 0..20_000_i64) {
        let mut root = own(BudgetConfig { tokens: Some(most), ..NONE }, Used::default());
        let mut child = Budget::new(Payer::Above { thread: NONE, run: NONE }, Used::default());
        let mut sum = Used::default();
        for (used, is_charged) in parts {
            child.count(used);
            sum += used;
            if is_charged && let Some(used) = child.take_uncharged() {
                root.used_below(used);
            }
        }
        root.used_below(child.take_uncharged().unwrap_or_default());
        prop_assert_eq!(root.used, sum);
        prop_assert_eq!(child.used, sum);
        prop_assert_eq!(root.exceeded().is_some(), sum.tokens > most);
    }
}
