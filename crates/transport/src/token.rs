//! The secret of clients that cannot be identified by their user.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use codex_files::Links;

/// The number of random bytes in a generated token.
const RANDOM_BYTES: usize = 32;
/// The allowed lengths of a token: one that can be guessed is no protection.
const LENGTHS: std::ops::RangeInclusive<usize> = 16..=1024;
/// The method of the line that presents it over TCP.
#[cfg(any(feature = "dial", feature = "listen"))]
pub(crate) const AUTHENTICATE: &str = "authenticate";

/// A secret. It never appears in debug output or in errors.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    secret: String,
    /// Another secret that authenticates as well.
    other: Option<String>,
    /// Whether it is sent to a server that does not prove that it knows it.
    is_sent: bool,
}

/// The reason why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("could not read the token file {path}", path = .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("could not write the token file {path}", path = .path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Others can read or change the file.
    #[error("the token file {path} belongs to another user or can be read by others; run chmod 600 on it", path = .path.display())]
    Exposed { path: PathBuf },
    /// It is too short, too long, or has characters that a header cannot carry.
    #[error("a token has {} to {} visible characters without spaces", LENGTHS.start(), LENGTHS.end())]
    Unfit,
}

/// Random bytes in hexadecimal digits.
pub(crate) fn random_hex() -> io::Result<String> {
    let mut bytes = [0; RANDOM_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    Ok(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect())
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// Validates a text as a token.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let text = text.trim();
        if LENGTHS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            Ok(Self { secret: text.to_owned(), other: None, is_sent: false })
        } else {
            Err(TokenError::Unfit)
        }
    }

    /// Reads a token from a file that nobody else can read and that is not a link.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let failed = |source| TokenError::Read { path: path.to_owned(), source };
        let opened = codex_files::open_with(OpenOptions::new().read(true), Links::Refused, path);
        let file = opened.map_err(|error| failed(error.into()))?;
        let metadata = file.metadata().map_err(failed)?;
        let own = rustix::process::geteuid().as_raw();
        if !metadata.is_file() || metadata.mode() & 0o077 != 0 || ![own, 0].contains(&metadata.uid()) {
            return Err(TokenError::Exposed { path: path.to_owned() });
        }
        let mut text = String::new();
        file.take(*LENGTHS.end() as u64 + 2).read_to_string(&mut text).map_err(failed)?;
        Self::new(&text)
    }

    /// Reads a token from a file, or generates one and writes it there if there is none yet.
    pub fn read_or_make(path: &Path) -> Result<Self, TokenError> {
        match Self::read(path) {
            Err(TokenError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let failed = |source| TokenError::Write { path: path.to_owned(), source };
        let token = Self::random().map_err(failed)?;
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(mut file) => {
                writeln!(file, "{}", token.secret).map_err(failed)?;
                Ok(token)
            }
            // Another server was faster, and its token is just as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(path),
            Err(error) => Err(failed(error)),
        }
    }

    fn random() -> io::Result<Self> {
        Ok(Self { secret: random_hex()?, other: None, is_sent: false })
    }

    /// The same, to be sent to servers that cannot prove that they know it.
    #[must_use]
    pub fn sent(self) -> Self {
        Self { is_sent: true, ..self }
    }

    /// The same, but those who present another token are authenticated too.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self { other: Some(other.secret), ..self }
    }
}

#[cfg(feature = "listen")]
impl Token {
    /// The secrets that authenticate a client.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.secret.as_str()).chain(self.other.as_deref())
    }

    /// Compares in constant time.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        use subtle::ConstantTimeEq as _;
        let is = self.secret.as_bytes().ct_eq(text.as_bytes());
        // Both are compared always, so the time does not tell which one was presented.
        let other = self.other.as_deref().unwrap_or(&self.secret);
        (is | other.as_bytes().ct_eq(text.as_bytes())).into()
    }

    /// Whether an `Authorization` header carries the token.
    #[must_use]
    pub(crate) fn authorizes(&self, header: Option<&http::HeaderValue>) -> bool {
        let text = header.and_then(|value| value.to_str().ok());
        let token =
            text.and_then(|text| text.split_once(' ')).filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        token.is_some_and(|(_, token)| self.is(token.trim()))
    }
}

#[cfg(feature = "dial")]
impl Token {
    /// The secret itself, for the message that carries it.
    pub(crate) fn reveal(&self) -> &str {
        &self.secret
    }

    /// Whether the user wants it to be sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.is_sent
    }

    /// An `Authorization` header that carries it.
    pub(crate) fn header(&self) -> Option<http::HeaderValue> {
        let mut value = http::HeaderValue::from_str(&format!("Bearer {}", self.secret)).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let made = Token::read_or_make(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(Token::read_or_make(&path).unwrap() == made);
        assert!(Token::read_or_make(&folder.path().join("other")).unwrap() != made);
        assert_eq!(format!("{made:?}"), "Token(..)");
    }

    #[test]
    fn a_file_that_others_can_read_is_refused_and_a_link_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        Token::read_or_make(&path).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(matches!(Token::read_or_make(&link), Err(TokenError::Read { .. })));
        for mode in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(matches!(Token::read(&path), Err(TokenError::Exposed { .. })), "{mode:o}");
        }
    }

    #[cfg(feature = "listen")]
    #[test]
    fn only_the_whole_token_in_its_header_counts() {
        let token = Token::new("0123456789abcdef").unwrap();
        let check = |text: &str| token.authorizes(http::HeaderValue::from_str(text).ok().as_ref());
        assert!(check("Bearer 0123456789abcdef"));
        assert!(check("bearer 0123456789abcdef"));
        for text in ["0123456789abcdef", "Basic 0123456789abcdef", "Bearer 0123456789abcde", "Bearer ", "", "Bearer"] {
            assert!(!check(text), "{text}");
        }
        assert!(!token.authorizes(None));
    }

    #[test]
    fn one_of_two_tokens_is_enough() {
        let (own, other) = (Token::new("0123456789abcdef").unwrap(), Token::new("fedcba9876543210").unwrap());
        let both = own.clone().or(other);
        assert!(both.is("0123456789abcdef") && both.is("fedcba9876543210"));
        assert!(!both.is("0123456789abcde") && !both.is("") && !own.is("fedcba9876543210"));
        assert_eq!(both.reveal(), "0123456789abcdef");
        assert_eq!(format!("{both:?}"), "Token(..)");
    }

    #[test]
    fn guessable_tokens_are_refused() {
        for text in ["", "short", "has a space in its middle", "0123456789abcde\u{e9}", &"x".repeat(1025)] {
            assert!(Token::new(text).is_err(), "{text}");
        }
    }
}
