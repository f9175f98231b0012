//! The body of a response, decompressed. The HTTP client takes care of gzip.

use std::error::Error;
use std::io;

use bytes::Bytes;
use reqwest::header::CONTENT_ENCODING;
use reqwest::{Response, Version};
use tokio::task::coop::consume_budget;

use super::request_sender::{header_text, without_url};
use crate::zstd::Decoder;

/// The compressions that responses may have.
pub(super) const ACCEPTED_ENCODINGS: &str = "gzip, zstd";

/// The body of a response.
pub(super) struct ResponseBody {
    response: Response,
    decoder: Option<Box<Decoder>>,
}

impl ResponseBody {
    pub(super) fn new(response: Response) -> Self {
        let encoding = header_text(response.headers(), CONTENT_ENCODING.as_str()).unwrap_or_default();
        let decoder = encoding.trim().eq_ignore_ascii_case("zstd").then(|| Box::new(Decoder::new()));
        Self { response, decoder }
    }

    /// Whether the connection can be used again although a part of the body was not read.
    pub(super) fn is_independent(&self) -> bool {
        self.response.version() >= Version::HTTP_2
    }

    /// The next piece of the body.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Box<dyn Error + Send + Sync>> {
        let Some(decoder) = &mut self.decoder else { return self.response.chunk().await.map_err(without_url) };
        loop {
            if let Some(block) = decoder.next()? {
                return Ok(Some(Bytes::copy_from_slice(block)));
            }
            consume_budget().await;
            match self.response.chunk().await.map_err(without_url)? {
                Some(chunk) => decoder.push(&chunk),
                None if decoder.is_complete() => return Ok(None),
                None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            }
        }
    }
}
