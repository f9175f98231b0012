//! The address of a server, as a URL.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Standard input and output.
    Stdio,
    /// A Unix socket; without a path, the one in the home folder.
    Unix(Option<PathBuf>),
    /// WebSocket, one message per text frame.
    Ws(SocketAddr),
    /// TCP, one message per line.
    Tcp(SocketAddr),
    /// gRPC, one message per stream message.
    Grpc(SocketAddr),
    /// HTTP, one exchange per request. Its clients have no connection, so it is no address of lines.
    Http(SocketAddr),
}

/// The reason why a text is not an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The scheme is unknown.
    #[error("{text} is not an address; use stdio://, unix://PATH, ws://IP:PORT, tcp://IP:PORT or grpc://IP:PORT")]
    Scheme { text: String },
    /// The path of a socket is not absolute.
    #[error("the path in {text} is not absolute; an absolute one has three slashes, as in unix:///run/codex.sock")]
    Relative { text: String },
    /// It is no address for HTTP.
    #[error("{text} is not an address for HTTP; use http://IP:PORT or IP:PORT")]
    NoHttp { text: String },
    /// The IP address or the port is missing.
    #[error("{text} does not name an IP address and a port, as in 127.0.0.1:8080")]
    Host { text: String },
}

impl Address {
    /// The IP address and port, if it has them.
    #[must_use]
    pub fn ip(&self) -> Option<SocketAddr> {
        match self {
            Self::Stdio | Self::Unix(_) => None,
            Self::Ws(ip) | Self::Tcp(ip) | Self::Grpc(ip) | Self::Http(ip) => Some(*ip),
        }
    }

    /// Parses an address for HTTP, as a URL or without a scheme.
    pub fn http(text: &str) -> Result<Self, AddressError> {
        match text.split_once("://") {
            None => host(text, text).map(Self::Http),
            Some(("http", rest)) => host(text, rest).map(Self::Http),
            Some(_) => Err(AddressError::NoHttp { text: text.to_owned() }),
        }
    }

    /// Whether clients must present a token.
    #[must_use]
    pub fn needs_token(&self) -> bool {
        self.ip().is_some()
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if text == "stdio" {
            return Ok(Self::Stdio);
        }
        let unknown = || AddressError::Scheme { text: text.to_owned() };
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        match scheme {
            "stdio" if rest.is_empty() => Ok(Self::Stdio),
            "unix" if rest.is_empty() => Ok(Self::Unix(None)),
            "unix" if rest.starts_with('/') => Ok(Self::Unix(Some(PathBuf::from(rest)))),
            "unix" => Err(AddressError::Relative { text: text.to_owned() }),
            "ws" => host(text, rest).map(Self::Ws),
            "tcp" => host(text, rest).map(Self::Tcp),
            "grpc" => host(text, rest).map(Self::Grpc),
            _ => Err(unknown()),
        }
    }
}

/// Parses an IP address with a port. The one accepted name means this machine, so that no resolver decides who listens.
fn host(text: &str, rest: &str) -> Result<SocketAddr, AddressError> {
    let wrong = || AddressError::Host { text: text.to_owned() };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    match rest.strip_prefix("localhost:") {
        Some(port) => Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().map_err(|_| wrong())?)),
        None => rest.parse().map_err(|_| wrong()),
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio => f.write_str("stdio://"),
            Self::Unix(None) => f.write_str("unix://"),
            Self::Unix(Some(path)) => write!(f, "unix://{}", path.display()),
            Self::Ws(ip) => write!(f, "ws://{ip}"),
            Self::Tcp(ip) => write!(f, "tcp://{ip}"),
            Self::Grpc(ip) => write!(f, "grpc://{ip}"),
            Self::Http(ip) => write!(f, "http://{ip}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_shown() {
        for text in
            ["stdio://", "unix://", "unix:///run/a b.sock", "ws://127.0.0.1:0", "tcp://[::1]:80", "grpc://10.0.0.1:1"]
        {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert_eq!("ws://localhost:7/".parse::<Address>().unwrap().to_string(), "ws://127.0.0.1:7");
    }

    #[test]
    fn an_address_for_http_needs_no_scheme() {
        for text in ["127.0.0.1:8080", "http://127.0.0.1:8080", "http://localhost:8080/"] {
            assert_eq!(Address::http(text).unwrap().to_string(), "http://127.0.0.1:8080");
        }
        for (text, hint) in
            [("ws://127.0.0.1:1", "use http://IP:PORT"), ("8080", "IP address"), ("a.b:1", "IP address")]
        {
            let error = Address::http(text).unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn an_invalid_address_is_refused_with_an_example() {
        for (text, hint) in [
            ("std", "use stdio://"),
            ("stdio://x", "use stdio://"),
            ("wss://127.0.0.1:1", "use stdio://"),
            ("http://127.0.0.1:1", "use stdio://"),
            ("unix://run/x", "three slashes"),
            ("ws://example.org:80", "IP address"),
            ("ws://127.0.0.1", "IP address"),
            ("tcp://localhost:99999", "IP address"),
            ("grpc://", "IP address"),
        ] {
            let error = text.parse::<Address>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
