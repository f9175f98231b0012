//! `turn/*`, `review/start`, and other requests about a loaded thread.

use std::sync::Arc;
use std::time::Duration;

use codex_log::TurnId;
use codex_log::review;
use codex_log::settings::SettingsChange;
use codex_protocol::methods::{Method, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::pending::{ServerRequestListParams, ServerRequestListResponse};
use codex_protocol::v2::thread::{
    ThreadParams, ThreadResponse, ThreadRevertParams, ThreadRollbackParams, ThreadSettingsUpdateParams,
    ThreadShellCommandParams,
};
use codex_protocol::v2::turn::{
    ReviewDelivery, ReviewStartParams, ReviewStartResponse, Turn, TurnInterruptParams, TurnStartParams,
    TurnStartResponse, TurnSteerParams, TurnSteerResponse,
};
use codex_protocol::v2::turn_list::ThreadInjectItemsParams;
use codex_thread::{TurnInput, TurnStart};
use codex_wire::additional_context::AdditionalContext;
use codex_wire::ids::ThreadId;
use codex_wire::input::UserInput;
use codex_wire::review::{BaseBranchTarget, CommitTarget, CustomTarget, ReviewRequest, ReviewTarget};

use super::dispatch::{Request, ServeThread, not_found, serve};
use super::lane::Lane;
use super::stored_threads::Turns;
use super::subscriber::ThreadSubscriber;
use codex_dialects::ProtocolRelease;
use codex_dialects::v2::project::first_message_item;
use codex_dialects::v2::reviews::review_turn;

serve! {
    subscribed {
        TurnStart => start,
        TurnSteer => steer,
        TurnInterrupt => interrupt,
        ReviewStart => start_review,
        ThreadCompactStart => compact,
        ThreadSettingsUpdate => update_settings,
        ThreadInjectItems => inject,
        ThreadShellCommand => run_user_shell,
        ServerRequestList => list_questions,
    }
}

impl ServeThread for call::ThreadRollback {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ThreadRollbackParams) {
        let done = match lane.subscriber().await {
            Ok(subscriber) => roll_back(subscriber, params.num_turns as usize).await,
            Err(error) => Err(error),
        };
        taken_back(lane, request, done).await;
    }
}

impl ServeThread for call::ThreadRevert {
    async fn serve(lane: &mut Lane, request: Request<Self>, params: ThreadRevertParams) {
        let done = match lane.subscriber().await {
            Ok(subscriber) => revert(subscriber, params.before_turn_id).await,
            Err(error) => Err(error),
        };
        taken_back(lane, request, done).await;
    }
}

/// The error for a thread that has ended.
pub(crate) fn closed(subscriber: &ThreadSubscriber) -> ErrorObject {
    not_found(&subscriber.thread.id().to_string())
}

/// Creates a unique turn id.
pub(crate) fn fresh_turn() -> TurnId {
    TurnId::new(ThreadId::fresh().to_string())
}

async fn start(subscriber: &mut ThreadSubscriber, params: TurnStartParams) -> Result<TurnStartResponse, ErrorObject> {
    if params.input.is_empty() {
        return Err(ErrorObject::invalid("input must not be empty"));
    }
    let change = SettingsChange {
        cwd: params.cwd,
        approval_policy: params.approval_policy,
        reviewer: params.approvals_reviewer,
        sandbox_policy: params.sandbox_policy,
        model: params.model,
        effort: params.effort.map(Some),
        summary: params.summary,
        output_schema: params.output_schema,
        mode: None,
    }
    .under(params.collaboration_mode);
    let key = params.client_user_message_id.map(Into::into);
    let context = checked_context(params.additional_context)?;
    let first_message = (subscriber.connection.release() == ProtocolRelease::V058).then(|| params.input.clone());
    subscriber.open_with(first_message.clone());
    let said = say(subscriber, TurnInput { content: params.input, change, key, context }).await;
    let turn = match said.inspect_err(|_| subscriber.open_with(None))? {
        AcceptedInput { turn, is_new: true } => {
            let items = first_message.iter().map(|message| first_message_item(&turn, message)).collect();
            Turn { items, ..Turn::begun(turn) }
        }
        AcceptedInput { turn, is_new: false } => earlier(subscriber, turn).await?,
    };
    Ok(TurnStartResponse { turn })
}

/// The texts beside a message, whose names are those of 0.166.
fn checked_context(context: Option<AdditionalContext>) -> Result<AdditionalContext, ErrorObject> {
    let context = context.unwrap_or_default();
    let is_letter = |c: u8| c.is_ascii_lowercase();
    let is_name = |name: &str| {
        name.len() <= 64
            && name.bytes().next().is_some_and(is_letter)
            && name.bytes().all(|c| is_letter(c) || c.is_ascii_digit() || c == b'_')
    };
    match context.iter().find(|(_, entry)| entry.name.as_deref().is_some_and(|name| !is_name(name))) {
        None => Ok(context),
        Some((key, _)) => Err(ErrorObject::invalid(format!(
            "additionalContext.{key}.name: expected a lowercase letter, and up to 63 lowercase letters, digits and `_`"
        ))),
    }
}

/// An existing turn, with its result if it has ended.
async fn earlier(subscriber: &ThreadSubscriber, id: String) -> Result<Turn, ErrorObject> {
    let running = subscriber.thread.running().await.map_err(|_| closed(subscriber))?;
    if running.is_some_and(|running| running.as_str() == id) {
        return Ok(Turn::begun(id));
    }
    let turns = stored_turns(subscriber).await?;
    Ok(turns.into_iter().find(|turn| turn.id == id).unwrap_or_else(|| Turn::begun(id)))
}

async fn stored_turns(subscriber: &ThreadSubscriber) -> Result<Vec<Turn>, ErrorObject> {
    let (host, id, release) =
        (Arc::clone(&subscriber.connection.host), subscriber.thread.id(), subscriber.connection.release());
    super::disk::blocking(move || super::stored::turns(&*host.store, id, release).map_err(ErrorObject::from_display))
        .await
}

/// Checks the input of a turn: its folder must exist, and its images must not be too large.
pub(crate) async fn check_turn(
    subscriber: &ThreadSubscriber,
    change: &SettingsChange,
    input: &[UserInput],
) -> Result<(), ErrorObject> {
    let places = &subscriber.connection.host.places.files;
    super::disk::check_turn(places, change.cwd.as_deref(), &subscriber.thread.started().settings.cwd, input).await
}

/// The result of accepting input.
struct AcceptedInput {
    /// The turn that receives the input.
    turn: String,
    /// Whether it is new, rather than a repetition of a message that was already accepted.
    is_new: bool,
}

/// Sends input to the thread.
async fn say(subscriber: &ThreadSubscriber, input: TurnInput) -> Result<AcceptedInput, ErrorObject> {
    check_turn(subscriber, &input.change, &input.content).await?;
    let turn = fresh_turn();
    let start = subscriber.thread.say_once(turn.clone(), input).await.map_err(|_| closed(subscriber))?;
    Ok(match start {
        TurnStart::Started => AcceptedInput { turn: turn.as_str().to_owned(), is_new: true },
        TurnStart::Joined(running) => AcceptedInput { turn: running.as_str().to_owned(), is_new: true },
        TurnStart::Known(before) => AcceptedInput { turn: before.as_str().to_owned(), is_new: false },
        TurnStart::Refused(why) => return Err(ErrorObject::invalid(why)),
    })
}

async fn steer(subscriber: &mut ThreadSubscriber, params: TurnSteerParams) -> Result<TurnSteerResponse, ErrorObject> {
    let TurnSteerParams { expected_turn_id, input, client_user_message_id, additional_context, .. } = params;
    if input.is_empty() {
        return Err(ErrorObject::invalid("input must not be empty"));
    }
    check_running(subscriber, &expected_turn_id).await?;
    let key = client_user_message_id.map(Into::into);
    let context = checked_context(additional_context)?;
    let turn_id = say(subscriber, TurnInput { content: input, key, context, ..TurnInput::default() }).await?.turn;
    Ok(TurnSteerResponse { turn_id })
}

/// Returns an error unless that turn is running.
async fn check_running(subscriber: &ThreadSubscriber, expected: &str) -> Result<(), ErrorObject> {
    let running = subscriber.thread.running().await.map_err(|_| closed(subscriber))?;
    match running {
        Some(turn) if turn.as_str() == expected => Ok(()),
        Some(turn) => {
            Err(ErrorObject::invalid(format!("expected active turn id `{expected}` but found `{}`", turn.as_str())))
        }
        None => Err(ErrorObject::invalid("no active turn")),
    }
}

async fn interrupt(subscriber: &mut ThreadSubscriber, params: TurnInterruptParams) -> Result<Empty, ErrorObject> {
    if let Some(turn) = params.turn_id.filter(|_| subscriber.connection.release() == ProtocolRelease::V0166) {
        check_running(subscriber, &turn).await?;
    }
    let thread = &subscriber.thread;
    let stopped = if params.keep_agents { thread.interrupt_turn_alone().await } else { thread.interrupt().await };
    match stopped {
        Ok(true) => Ok(Empty {}),
        Ok(false) => Err(ErrorObject::invalid("no active turn to interrupt")),
        Err(_) => Err(closed(subscriber)),
    }
}

async fn start_review(
    subscriber: &mut ThreadSubscriber,
    params: ReviewStartParams,
) -> Result<ReviewStartResponse, ErrorObject> {
    let ReviewStartParams { target, delivery, .. } = params;
    let target = trimmed(target)?;
    let turn = fresh_turn();
    let text = review::hint(&target);
    let request = ReviewRequest { target, user_facing_hint: None };
    let thread = match delivery.unwrap_or_default() {
        ReviewDelivery::Inline => subscriber.thread.clone(),
        ReviewDelivery::Detached => super::open_thread::start_sibling(subscriber).await?,
    };
    thread.review(turn.clone(), request).await.map_err(|_| closed(subscriber))?;
    Ok(ReviewStartResponse { turn: review_turn(turn.as_str(), text), review_thread_id: thread.id().to_string() })
}

/// The target of a review, without white space around names. An empty target is refused.
fn trimmed(target: ReviewTarget) -> Result<ReviewTarget, ErrorObject> {
    let said = |what: &str, text: &str| {
        let text = text.trim();
        if text.is_empty() {
            Err(ErrorObject::invalid(format!("{what} must not be empty")))
        } else {
            Ok(text.to_owned())
        }
    };
    Ok(match target {
        ReviewTarget::BaseBranch(base) => {
            ReviewTarget::BaseBranch(BaseBranchTarget { branch: said("branch", &base.branch)? })
        }
        ReviewTarget::Commit(commit) => ReviewTarget::Commit(CommitTarget {
            sha: said("sha", &commit.sha)?,
            title: commit.title.and_then(|title| said("title", &title).ok()),
        }),
        ReviewTarget::Custom(custom) => {
            ReviewTarget::Custom(CustomTarget { instructions: said("instructions", &custom.instructions)? })
        }
        ReviewTarget::UncommittedChanges | ReviewTarget::Other(_) => target,
    })
}

async fn run_user_shell(
    subscriber: &mut ThreadSubscriber,
    params: ThreadShellCommandParams,
) -> Result<Empty, ErrorObject> {
    if params.command.trim().is_empty() {
        return Err(ErrorObject::invalid("command must not be empty"));
    }
    let timeout = params.timeout_ms.map(Duration::from_millis);
    match subscriber.thread.run_user_shell(fresh_turn(), params.command, timeout).await {
        Ok(true) => Ok(Empty {}),
        Ok(false) => Err(ErrorObject::invalid("a turn is running; wait for its end or interrupt it")),
        Err(_) => Err(closed(subscriber)),
    }
}

async fn compact(subscriber: &mut ThreadSubscriber, _: ThreadParams) -> Result<Empty, ErrorObject> {
    subscriber.thread.compact(fresh_turn()).await.map(|()| Empty {}).map_err(|_| closed(subscriber))
}

async fn update_settings(
    subscriber: &mut ThreadSubscriber,
    params: ThreadSettingsUpdateParams,
) -> Result<Empty, ErrorObject> {
    subscriber.thread.configure(settings(params)).await.map(|_| Empty {}).map_err(|_| closed(subscriber))
}

async fn list_questions(
    subscriber: &mut ThreadSubscriber,
    _: ServerRequestListParams,
) -> Result<ServerRequestListResponse, ErrorObject> {
    Ok(ServerRequestListResponse { data: subscriber.pending().await })
}

async fn inject(subscriber: &mut ThreadSubscriber, params: ThreadInjectItemsParams) -> Result<Empty, ErrorObject> {
    let items = super::open_thread::read_items(params.items)?;
    match subscriber.thread.inject(items).await {
        Ok(true) => Ok(Empty {}),
        Ok(false) => Err(ErrorObject::invalid("a turn is running; wait for its end or interrupt it")),
        Err(_) => Err(closed(subscriber)),
    }
}

async fn roll_back(subscriber: &mut ThreadSubscriber, turns: usize) -> Result<ThreadResponse, ErrorObject> {
    if turns == 0 {
        return Err(ErrorObject::invalid("numTurns must be at least 1"));
    }
    if !subscriber.thread.roll_back(turns).await.map_err(|_| closed(subscriber))? {
        let text = "cannot roll back: a turn runs, or the thread has not so many turns since its last summary";
        return Err(ErrorObject::invalid(text));
    }
    let settings = subscriber.thread.configure(SettingsChange::default()).await.map_err(|_| closed(subscriber))?;
    let thread =
        super::stored_threads::describe(&subscriber.connection, &subscriber.thread, &settings, Turns::Wanted).await?;
    Ok(ThreadResponse { thread })
}

/// Answers a rollback, and records which turns are left to read.
async fn taken_back<M>(lane: &Lane, request: Request<M>, done: Result<ThreadResponse, ErrorObject>)
where
    M: Method<Response = ThreadResponse>,
{
    let names = |done: &ThreadResponse| done.thread.turns.iter().map(|turn| turn.id.clone()).collect();
    let left: Option<Vec<String>> = done.as_ref().ok().map(names);
    request.answer(done).await;
    if let Some(left) = left {
        super::thread_metadata::turns_left(&lane.connection, lane.thread, left).await;
    }
}

async fn revert(subscriber: &mut ThreadSubscriber, before: String) -> Result<ThreadResponse, ErrorObject> {
    let turns = stored_turns(subscriber).await?;
    let place = turns.iter().position(|turn| turn.id == before);
    let place = place.ok_or_else(|| ErrorObject::invalid(format!("turn not found: {before}")))?;
    roll_back(subscriber, turns.len() - place).await
}

fn settings(params: ThreadSettingsUpdateParams) -> SettingsChange {
    SettingsChange {
        cwd: params.cwd,
        approval_policy: params.approval_policy,
        reviewer: params.approvals_reviewer,
        sandbox_policy: params.sandbox_policy,
        model: params.model,
        effort: params.effort.map(Some),
        summary: params.summary,
        output_schema: None,
        mode: None,
    }
    .under(params.collaboration_mode)
}
