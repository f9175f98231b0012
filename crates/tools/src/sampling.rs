//! Requests to the model on behalf of a program outside of this one.

use std::fmt;

use codex_wire::response::Message;
use futures_util::future::BoxFuture;

/// A request to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleRequest {
    pub instructions: String,
    pub messages: Vec<Message>,
    /// The maximum length of the answer.
    pub max_tokens: u32,
}

/// The answer of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    /// The model that answered.
    pub model: String,
    pub text: String,
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Whether it was longer than allowed.
    pub is_cut: bool,
}

/// Asks the model of a turn. The caller has had the request approved.
pub trait Sampler: Send + Sync + fmt::Debug {
    /// Asks once, without tools.
    fn sample(&self, request: SampleRequest) -> BoxFuture<'static, Result<Sample, String>>;
}
