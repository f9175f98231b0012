//! Proofs that both sides of a connection know the same token, without sending it.
//!
//! ```text
//! client ─▶ a nonce, and the address that it has connected to
//!        ◀─ another nonce, and the server's proof: a MAC over both nonces and the address, under the token
//! client ─▶ its own proof, over the same
//! ```
//!
//! A stranger at the address of a server that has ended learns nothing that it could use: the client hangs up when the
//! server's proof is wrong. Neither can it pass the messages on to another server with the same token, because a server
//! on a loopback address refuses a client that has connected to another one.

use std::io;
use std::net::SocketAddr;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::token::{Token, random_hex};

/// The scheme of the header that carries nonces and proofs.
pub(crate) const SCHEME: &str = "Codex-Proof";
/// The length of a nonce in hexadecimal digits.
const NONCE_DIGITS: usize = 64;

/// The side that makes a proof.
#[derive(Clone, Copy)]
enum Side {
    Client,
    Server,
}

/// The beginning of an exchange: the client's nonce and the address that it has connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) nonce: String,
    pub(crate) address: String,
}

/// An exchange as both sides know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) hello: Hello,
    /// The server's nonce.
    pub(crate) nonce: String,
}

impl Hello {
    #[cfg(feature = "dial")]
    pub(crate) fn to(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { nonce: random_hex()?, address: address.to_string() })
    }

    /// The server's part of the exchange, unless the client has connected to another server, or sent no nonce.
    #[cfg(feature = "listen")]
    pub(crate) fn answered(self, door: Option<SocketAddr>) -> Option<Exchange> {
        let is_here = door.is_none_or(|door| !door.ip().is_loopback() || self.address.parse() == Ok(door));
        let nonce = random_hex().ok().filter(|_| is_here && is_nonce(&self.nonce))?;
        Some(Exchange { hello: self, nonce })
    }

    /// The value of the header of the first request.
    #[cfg(feature = "dial")]
    pub(crate) fn to_header(&self) -> String {
        format!("{SCHEME} nonce={} address={}", self.nonce, self.address)
    }
}

impl Exchange {
    /// The server's proofs, one for each token that it accepts.
    #[cfg(feature = "listen")]
    pub(crate) fn proofs(&self, token: &Token) -> String {
        let proofs: Vec<_> = token.secrets().map(|secret| hex(self.mac(Side::Server, secret))).collect();
        proofs.join(",")
    }

    /// Whether the server knows the token.
    #[cfg(feature = "dial")]
    pub(crate) fn is_proved_by_server(&self, proofs: &str, token: &Token) -> bool {
        is_nonce(&self.nonce)
            && proofs.split(',').take(2).any(|proof| self.is_proof(Side::Server, token.reveal(), proof))
    }

    /// The client's proof.
    #[cfg(feature = "dial")]
    pub(crate) fn proof(&self, token: &Token) -> String {
        hex(self.mac(Side::Client, token.reveal()))
    }

    /// Whether the client knows one of the tokens.
    #[cfg(feature = "listen")]
    pub(crate) fn is_proved_by_client(&self, proof: &str, token: &Token) -> bool {
        token.secrets().any(|secret| self.is_proof(Side::Client, secret, proof))
    }

    /// The value of the header with the server's part.
    #[cfg(feature = "listen")]
    pub(crate) fn to_header(&self, token: &Token) -> String {
        format!("{SCHEME} nonce={} proof={}", self.nonce, self.proofs(token))
    }

    fn is_proof(&self, side: Side, secret: &str, proof: &str) -> bool {
        // The comparison takes the same time wherever the two differ.
        bytes(proof).is_some_and(|proof| self.mac(side, secret).verify_slice(&proof).is_ok())
    }

    fn mac(&self, side: Side, secret: &str) -> Hmac<Sha256> {
        let side = match side {
            Side::Client => "codex client",
            Side::Server => "codex server",
        };
        // A key may have any length, so this never fails.
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap_or_else(|_| Hmac::new(&[0; 64].into()));
        for part in [side, &self.hello.nonce, &self.nonce, &self.hello.address] {
            mac.update(part.as_bytes());
            mac.update(b"\n");
        }
        mac
    }
}

/// The entrance of one connection whose requests carry headers.
#[cfg(feature = "listen")]
#[derive(Debug)]
pub(crate) struct Entrance {
    token: Option<Token>,
    door: Option<SocketAddr>,
    /// Whether the token itself is taken.
    takes_bearer: bool,
    /// The exchange of this connection, once it has begun.
    exchange: std::sync::Mutex<Option<Exchange>>,
}

/// The outcome of a request at the entrance.
#[cfg(feature = "listen")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Admitted,
    /// The client has begun an exchange; this is the value of the header with the server's part.
    Challenged(String),
    Refused,
}

#[cfg(feature = "listen")]
impl Entrance {
    pub(crate) fn new(token: Option<Token>, door: Option<SocketAddr>, takes_bearer: bool) -> Self {
        Self { token, door, takes_bearer, exchange: std::sync::Mutex::default() }
    }

    pub(crate) fn door(&self) -> Option<SocketAddr> {
        self.door
    }

    /// Checks the header `Authorization` of a request.
    pub(crate) fn check(&self, header: Option<&http::HeaderValue>) -> Entry {
        let Some(token) = &self.token else { return Entry::Refused };
        let Some(parts) = header_parts(header) else {
            let is_admitted = self.takes_bearer && token.authorizes(header);
            return if is_admitted { Entry::Admitted } else { Entry::Refused };
        };
        let mut exchange = self.exchange.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(proof) = part(&parts, "proof") {
            let is_proved = exchange.as_ref().is_some_and(|exchange| exchange.is_proved_by_client(proof, token));
            return if is_proved { Entry::Admitted } else { Entry::Refused };
        }
        let hello = part(&parts, "nonce").zip(part(&parts, "address"));
        let hello = hello.map(|(nonce, address)| Hello { nonce: nonce.to_owned(), address: address.to_owned() });
        *exchange = hello.and_then(|hello| hello.answered(self.door));
        exchange.as_ref().map_or(Entry::Refused, |exchange| Entry::Challenged(exchange.to_header(token)))
    }
}

/// The parts of a header with this scheme; `None` for any other.
pub(crate) fn header_parts(value: Option<&http::HeaderValue>) -> Option<Vec<(&str, &str)>> {
    let (scheme, rest) = value?.to_str().ok()?.split_once(' ')?;
    let parts = rest.split(' ').filter_map(|part| part.split_once('='));
    scheme.eq_ignore_ascii_case(SCHEME).then(|| parts.collect())
}

/// A part of such a header by its name.
pub(crate) fn part<'a>(parts: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    parts.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
}

fn is_nonce(text: &str) -> bool {
    text.len() == NONCE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn hex(mac: Hmac<Sha256>) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    mac.finalize().into_bytes().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = hex.chars().take(65).map(|digit| digit.to_digit(16)).collect::<Option<_>>()?;
    let byte = |pair: &[u32]| u8::try_from(pair[0] * 16 + pair[1]).ok();
    (digits.len() == 64).then(|| digits.chunks_exact(2).filter_map(byte).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: &str = "127.0.0.1:9";

    fn door() -> Option<SocketAddr> {
        HERE.parse().ok()
    }

    fn exchange(address: &str) -> Option<Exchange> {
        Hello { address: address.to_owned(), ..Hello::to(HERE.parse().unwrap()).unwrap() }.answered(door())
    }

    #[test]
    fn both_sides_prove_that_they_know_the_token() {
        let (own, other) = (Token::new("0123456789abcdef").unwrap(), Token::new("fedcba9876543210").unwrap());
        let exchange = exchange(HERE).unwrap();
        let both = own.clone().or(other.clone());
        for token in [&own, &other] {
            assert!(exchange.is_proved_by_server(&exchange.proofs(&both), token));
            assert!(exchange.is_proved_by_client(&exchange.proof(token), &both));
        }
        assert!(!exchange.is_proved_by_server(&exchange.proofs(&own), &other));
        assert!(!exchange.is_proved_by_client(&exchange.proof(&other), &own));
        // The proof of one side is none of the other, and holds for one exchange.
        assert!(!exchange.is_proved_by_client(&exchange.proofs(&own), &own));
        let next = Exchange { nonce: random_hex().unwrap(), ..exchange.clone() };
        assert!(!next.is_proved_by_client(&exchange.proof(&own), &own));
        for nonsense in ["", "00", &"0".repeat(64), &"zz".repeat(32), &"0".repeat(9999)] {
            assert!(!exchange.is_proved_by_client(nonsense, &own), "{nonsense}");
        }
    }

    #[test]
    fn an_exchange_holds_for_one_address_of_this_machine() {
        assert!(exchange(HERE).is_some());
        for elsewhere in ["127.0.0.1:10", "127.0.0.2:9", "[::1]:9", "", "localhost:9"] {
            assert!(exchange(elsewhere).is_none(), "{elsewhere}");
        }
        let hello = |nonce: &str| Hello { nonce: nonce.to_owned(), address: HERE.to_owned() };
        for nonce in ["", "00", &"z".repeat(64), &"0".repeat(65)] {
            assert!(hello(nonce).answered(door()).is_none(), "{nonce}");
        }
        // Behind a gateway, an address that others reach is not the one that the client knows.
        let open = "10.0.0.1:9".parse().ok();
        assert!(hello(&"0".repeat(64)).answered(open).is_some());
    }

    #[test]
    fn the_proofs_are_those_of_the_other_languages() {
        let hello = Hello { nonce: "a".repeat(64), address: HERE.to_owned() };
        let exchange = Exchange { hello, nonce: "b".repeat(64) };
        let token = Token::new("0123456789abcdef").unwrap();
        let proofs = [exchange.proofs(&token), exchange.proof(&token)];
        expect_test::expect![[r"
            3f86427d36807ce9488589e2a174eafa123a54f4b6f5eab120e0c8fa2245d4d6
            c6be340cb77df88bb26f2e24ef2e33402c76d319e9e2d39ba249e3d6f08d757f"]]
        .assert_eq(&proofs.join("\n"));
    }
}
