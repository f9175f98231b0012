//! Downloading a model with Ollama: `POST /api/pull`, answered by one JSON object per line.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::Url;
use serde::Deserialize;

use crate::error_response::shorten;
use crate::{ModelError, http_client};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit for silence. A download of gigabytes reports progress all the time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// The maximum length of a line.
const LONGEST_LINE: usize = 64 * 1024;

/// More parts than any model has.
const MOST_PARTS: usize = 1000;

/// The progress of a download.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PullProgress {
    /// The number of bytes so far.
    pub completed: u64,
    /// The number of bytes in total, as far as it is known.
    pub total: u64,
}

/// A line of the answer.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Line {
    status: String,
    digest: Option<String>,
    total: u64,
    completed: u64,
    error: Option<String>,
}

/// Has Ollama download a model. The address is that of its compatible endpoint, with `/v1` at its end. The certificates
/// of a file are trusted besides those of the system.
///
/// # Errors
/// When the server cannot be reached, falls silent, or does not get the model.
pub async fn pull(
    base_url: &str,
    model: &str,
    own_certificates: Option<&Path>,
    mut tell: impl FnMut(PullProgress),
) -> Result<(), ModelError> {
    let root = base_url.trim_end_matches('/').trim_end_matches("/v1");
    let wrong = |why: String| ModelError::Url { url: base_url.to_owned(), why };
    let url = Url::parse(&format!("{root}/api/pull")).map_err(|error| wrong(error.to_string()))?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let failed =
        |source: reqwest::Error| ModelError::Connect { host: host.clone(), source: Box::new(source.without_url()) };
    let body = serde_json::json!({"model": model, "stream": true}).to_string();
    let client = http_client(&url, CONNECT_TIMEOUT, own_certificates)?;
    let asked = client.post(url).header("content-type", "application/json").body(body).send();
    let idle = |_| ModelError::Idle { after: IDLE_TIMEOUT };
    let response = tokio::time::timeout(IDLE_TIMEOUT, asked).await.map_err(idle)?.map_err(failed)?;
    let mut download = Download::default();
    let mut chunks = response.bytes_stream();
    loop {
        let chunk = tokio::time::timeout(IDLE_TIMEOUT, chunks.next()).await.map_err(idle)?;
        let Some(chunk) = chunk else { break };
        if download.read(&chunk.map_err(failed)?, model, &mut tell)? {
            return Ok(());
        }
    }
    if download.read(b"\n", model, &mut tell)? { Ok(()) } else { Err(ModelError::Disconnected { source: None }) }
}

/// The progress of a download.
#[derive(Debug, Default)]
struct Download {
    /// The start of an incomplete line.
    line: Vec<u8>,
    /// The parts of the model by name, with their progress.
    parts: Vec<(String, PullProgress)>,
}

impl Download {
    /// Processes bytes; true when the model is complete.
    fn read(&mut self, bytes: &[u8], model: &str, tell: &mut impl FnMut(PullProgress)) -> Result<bool, ModelError> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.len() > LONGEST_LINE {
                return Err(refused(model, "a line of its answer is too long"));
            }
            if piece.last() != Some(&b'\n') {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            // An empty or unknown line is ignored.
            let Ok(line) = serde_json::from_slice::<Line>(&line) else { continue };
            if let Some(error) = line.error {
                return Err(refused(model, &error));
            }
            if line.status == "success" {
                return Ok(true);
            }
            self.count(line, tell);
        }
        Ok(false)
    }

    fn count(&mut self, Line { digest, total, completed, .. }: Line, tell: &mut impl FnMut(PullProgress)) {
        let Some(digest) = digest else { return };
        let known = PullProgress { completed, total };
        if let Some((_, part)) = self.parts.iter_mut().find(|(name, _)| *name == digest) {
            *part = known;
        } else if self.parts.len() < MOST_PARTS {
            self.parts.push((digest, known));
        }
        let sum = |of: fn(&PullProgress) -> u64| {
            self.parts.iter().fold(0, |sum: u64, (_, part)| sum.saturating_add(of(part)))
        };
        tell(PullProgress { completed: sum(|part| part.completed), total: sum(|part| part.total) });
    }
}

fn refused(model: &str, why: &str) -> ModelError {
    ModelError::Unavailable { message: format!("Ollama could not get {model}: {}", shorten(why.trim(), 500)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANSWER: &str = concat!(
        "{\"status\":\"pulling manifest\"}\n",
        "{\"status\":\"pulling a\",\"digest\":\"a\",\"total\":100}\n",
        "{\"status\":\"pulling a\",\"digest\":\"a\",\"total\":100,\"completed\":60}\n\nodd\n",
        "{\"status\":\"pulling b\",\"digest\":\"b\",\"total\":50,\"completed\":50}\n",
        "{\"status\":\"success\"}\n",
    );

    fn told(pieces: &[&[u8]]) -> (Vec<(u64, u64)>, Result<bool, String>) {
        let (mut download, mut told, mut end) = (Download::default(), Vec::new(), Ok(false));
        for piece in pieces {
            let mut tell = |progress: PullProgress| told.push((progress.completed, progress.total));
            end = download.read(piece, "m", &mut tell).map_err(|error| error.to_string());
            if end != Ok(false) {
                break;
            }
        }
        (told, end)
    }

    #[test]
    fn the_parts_of_a_model_are_added_up() {
        assert_eq!(told(&[ANSWER.as_bytes()]), (vec![(0, 100), (60, 100), (110, 150)], Ok(true)));
    }

    #[test]
    fn a_refusal_has_a_reason() {
        let (_, end) = told(&[b"{\"error\":\"pull model manifest: file does not exist\"}\n"]);
        assert_eq!(end, Err("Ollama could not get m: pull model manifest: file does not exist".to_owned()));
        let (_, end) = told(&[&vec![b'x'; LONGEST_LINE + 1]]);
        assert_eq!(end, Err("Ollama could not get m: a line of its answer is too long".to_owned()));
    }

    proptest! {
        #[test]
        fn any_split_of_bytes_gives_the_same_progress(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
            let pieces = crate::testing::pieces(ANSWER.as_bytes(), &cuts);
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(told(&pieces), told(&[ANSWER.as_bytes()]));
        }
    }
}
