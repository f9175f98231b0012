//! From the table of methods to the code that serves each, in the order that its scope says.
//!
//! Every row of [`codex_protocol::for_each_method!`] has one handler: an `impl` of [`Serve`], or of [`ServeThread`] if
//! its scope is a thread. A row without a handler does not compile:
//!
//! ```compile_fail,E0277
//! use codex_protocol::methods::{Method, call};
//!
//! trait Serve: Method {}
//! impl Serve for call::Initialize {}
//!
//! fn dispatch<M: Serve>() {}
//! macro_rules! serve_all {
//!     ($($name:ident $scope:ident,)*) => { $(dispatch::<call::$name>();)* };
//! }
//! codex_protocol::for_each_method!(serve_all);
//! ```
//!
//! Nor does a row of scope `Thread` whose parameters name no thread, such as those of `model/list`:
//!
//! ```compile_fail,E0277
//! use codex_protocol::methods::{Method, NamesThread, call};
//!
//! fn in_lane<M: Method<Params: NamesThread>>() {}
//! in_lane::<call::ModelList>();
//! ```
//!
//! With handlers and names, the same compiles:
//!
//! ```
//! use codex_protocol::methods::{Method, NamesThread};
//!
//! fn at_once<M: Method>() {}
//! fn in_lane<M: Method<Params: NamesThread>>() {}
//! macro_rules! by_scope {
//!     (Thread $method:ty) => { in_lane::<$method>() };
//!     ($other:ident $method:ty) => { at_once::<$method>() };
//! }
//! macro_rules! serve_all {
//!     ($($name:ident $scope:ident,)*) => { $(by_scope!($scope codex_protocol::methods::call::$name);)* };
//! }
//! codex_protocol::for_each_method!(serve_all);
//! ```

use std::marker::PhantomData;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use codex_protocol::methods::{ClientRequest, Method, NamesThread, ThreadName, call};
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::notification::ServerNotification;
use codex_wire::ids::ThreadId;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::connection::{Connection, Unanswered};
use super::disk::blocking;
use super::lane::{Job, Lane};
use super::stored_threads::{parse_name, tell_all};

pub(crate) trait Serve: Method {
    /// Serves one request.
    fn serve(request: Request<Self>, params: Self::Params) -> impl Future<Output = ()> + Send;
}

pub(crate) trait ServeThread: Method<Params: NamesThread> {
    /// Serves one request, after all earlier ones of the same client about the same thread.
    fn serve(lane: &mut Lane, request: Request<Self>, params: Self::Params) -> impl Future<Output = ()> + Send;
}

/// A request with its typed method, which must be answered.
pub(crate) struct Request<M> {
    /// The requester.
    pub(crate) connection: Arc<Connection>,
    unanswered: Unanswered,
    method: PhantomData<fn() -> M>,
}

impl<M: Method> Request<M> {
    pub(crate) fn new(unanswered: Unanswered) -> Self {
        Self { connection: Arc::clone(&unanswered.connection), unanswered, method: PhantomData }
    }

    /// Sends the result.
    pub(crate) async fn answer(self, result: Result<M::Response, ErrorObject>) {
        self.unanswered.answer::<M>(result).await;
    }

    /// Passes the pending response to code that sends it later.
    pub(crate) fn later(self) -> Unanswered {
        self.unanswered
    }
}

/// Assigns a function to each method of a family.
///
/// | kind | parameters | result |
/// |---|---|---|
/// | `sure` | `&Arc<Connection>`, parameters | the answer |
/// | `plain` | the same | the answer or an error |
/// | `waits` | the same, and may wait | the answer or an error |
/// | `tells` | the same, and may wait | also the notifications for all clients after the answer |
/// | `stored` | the same, in the lane of the thread, which need not be loaded | the answer or an error |
/// | `stored_tells` | the same | also the notifications for all clients after the answer |
/// | `subscribed` | `&mut ThreadSubscriber` of the loaded thread, parameters | the answer or an error |
macro_rules! serve {
    ($($kind:ident { $($method:ident => $function:expr,)* })*) => {
        $($($crate::app::dispatch::serve_one!($kind codex_protocol::methods::call::$method, $function);)*)*
    };
}
pub(crate) use serve;

macro_rules! serve_one {
    (sure $method:ty, $function:expr) => {
        $crate::app::dispatch::serve_one!(@server $method, |request, params| {
            let answer = $function(&request.connection, params);
            request.answer(Ok(answer))
        });
    };
    (plain $method:ty, $function:expr) => {
        $crate::app::dispatch::serve_one!(@server $method, |request, params| {
            let result = $function(&request.connection, params);
            request.answer(result)
        });
    };
    (waits $method:ty, $function:expr) => {
        $crate::app::dispatch::serve_one!(@server $method, |request, params| async {
            let result = $function(&request.connection, params).await;
            request.answer(result).await;
        });
    };
    (tells $method:ty, $function:expr) => {
        $crate::app::dispatch::serve_one!(@server $method, |request, params| async {
            let done = $function(&request.connection, params).await;
            $crate::app::dispatch::answer_and_tell(request, done).await;
        });
    };
    (stored $method:ty, $function:expr) => {
        $crate::app::dispatch::serve_one!(@thread $method, |lane, request, params| async {
            let result = lane.while_listening($function(&request.connection, params)).await;
            request.answer(result).await;
        });
    };
    (stored_tells $method:ty, $function:expr) => {
        $crate::app::dispatch::serve_one!(@thread $method, |lane, request, params| async {
            let done = lane.while_listening($function(&request.connection, params)).await;
            $crate::app::dispatch::answer_and_tell(request, done).await;
        });
    };
    (subscribed $method:ty, $function:expr) => {
        $crate::app::dispatch::serve_one!(@thread $method, |lane, request, params| async {
            let result = match lane.subscriber().await {
                Ok(subscriber) => $function(subscriber, params).await,
                Err(error) => Err(error),
            };
            request.answer(result).await;
        });
    };
    (@server $method:ty, |$request:ident, $params:ident| $work:expr) => {
        impl $crate::app::dispatch::Serve for $method {
            async fn serve(
                $request: $crate::app::dispatch::Request<Self>,
                $params: <Self as codex_protocol::methods::Method>::Params,
            ) {
                $work.await;
            }
        }
    };
    (@thread $method:ty, |$lane:ident, $request:ident, $params:ident| $work:expr) => {
        impl $crate::app::dispatch::ServeThread for $method {
            async fn serve(
                $lane: &mut $crate::app::lane::Lane,
                $request: $crate::app::dispatch::Request<Self>,
                $params: <Self as codex_protocol::methods::Method>::Params,
            ) {
                $work.await;
            }
        }
    };
}
pub(crate) use serve_one;

macro_rules! dispatch_all {
    ($($name:ident $scope:ident,)*) => {
        /// Serves a request. Returns the work that has to be done before the next line is read.
        pub(crate) fn dispatch(unanswered: Unanswered, request: ClientRequest) -> Option<BoxFuture<'static, ()>> {
            match request {
                $(ClientRequest::$name(params) => {
                    by_scope!($scope, serve::<call::$name>(Request::new(unanswered), *params))
                })*
            }
        }
    };
}
macro_rules! by_scope {
    (Connection, serve::<$method:ty>($request:expr, $params:expr)) => {
        Some(at_once::<$method>($request, $params))
    };
    (Process, serve::<$method:ty>($request:expr, $params:expr)) => {{
        aside::<$method>($request, $params);
        None
    }};
    (Thread, serve::<$method:ty>($request:expr, $params:expr)) => {
        in_lane::<$method>($request, $params)
    };
}
codex_protocol::for_each_method!(dispatch_all);

/// Confines a panic to the request that caused it. The request is answered with an error when it is dropped.
pub(crate) async fn contained(work: impl Future<Output = ()>) {
    drop(AssertUnwindSafe(work).catch_unwind().await);
}

fn at_once<M: Serve>(request: Request<M>, params: M::Params) -> BoxFuture<'static, ()> {
    contained(M::serve(request, params)).boxed()
}

fn aside<M: Serve>(request: Request<M>, params: M::Params) {
    drop(tokio::spawn(M::serve(request, params)));
}

fn in_lane<M: ServeThread>(request: Request<M>, params: M::Params) -> Option<BoxFuture<'static, ()>> {
    let connection = Arc::clone(&request.connection);
    let named = match params.thread() {
        ThreadName::Text(text) => parse_name(text),
        ThreadName::Id(id) => Ok(id),
        ThreadName::Listener(name) => {
            connection.listener(name).ok_or_else(|| ErrorObject::invalid(format!("subscription not found: {name}")))
        }
        ThreadName::New => Ok(ThreadId::fresh()),
        ThreadName::Path(path) => {
            drop(tokio::spawn(in_lane_of_file(path.to_owned(), request, params)));
            return None;
        }
        ThreadName::PathInHome(path) => {
            let path = connection.host.start.config.home().path().join(path);
            drop(tokio::spawn(in_lane_of_file(path, request, params)));
            return None;
        }
    };
    let id = match named {
        Ok(id) => id,
        Err(error) => return Some(request.answer(Err(error)).boxed()),
    };
    let (job, error) = connection.enqueue(id, Box::new(Call { request, params })).err()?;
    Some(job.into_unanswered().refuse(error).boxed())
}

/// Finds the thread of a file, and serves the request in its lane.
async fn in_lane_of_file<M: ServeThread>(path: PathBuf, request: Request<M>, params: M::Params) {
    let host = Arc::clone(&request.connection.host);
    let located = blocking(move || host.store.locate(&path).map_err(ErrorObject::from_display)).await;
    let id = match located {
        Ok(located) => located.thread,
        Err(error) => return request.answer(Err(error)).await,
    };
    let connection = Arc::clone(&request.connection);
    if let Err((job, error)) = connection.enqueue(id, Box::new(Call { request, params })) {
        job.into_unanswered().refuse(error).await;
    }
}

/// A request that is passed through a lane.
struct Call<M: ServeThread> {
    request: Request<M>,
    params: M::Params,
}

impl<M: ServeThread> Job for Call<M> {
    fn run(self: Box<Self>, lane: &mut Lane) -> BoxFuture<'_, ()> {
        let Self { request, params } = *self;
        M::serve(lane, request, params).boxed()
    }

    fn into_unanswered(self: Box<Self>) -> Unanswered {
        self.request.unanswered
    }
}

/// Answers, and then sends all clients the notifications that follow.
pub(crate) async fn answer_and_tell<M: Method>(
    request: Request<M>,
    done: Result<(M::Response, impl IntoIterator<Item = ServerNotification>), ErrorObject>,
) {
    let connection = Arc::clone(&request.connection);
    match done {
        Ok((answer, told)) => {
            request.answer(Ok(answer)).await;
            for notification in told {
                tell_all(&connection, &notification).await;
            }
        }
        Err(error) => request.answer(Err(error)).await,
    }
}

/// The error for a thread that does not exist.
pub(crate) fn not_found(name: &str) -> ErrorObject {
    ErrorObject::invalid(format!("thread not found: {name}"))
}

#[cfg(test)]
mod tests;
