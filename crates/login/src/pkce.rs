//! Proof that a code is redeemed by the program that requested it (RFC 7636), and other random strings.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use codex_config::Secret;
use sha2::{Digest as _, Sha256};

use crate::LoginError;

/// The secret of a login, and the challenge that the issuer gets.
#[derive(Debug)]
pub(crate) struct Pkce {
    pub(crate) verifier: Secret,
    pub(crate) challenge: String,
}

impl Pkce {
    pub(crate) fn new() -> Result<Self, LoginError> {
        Ok(Self::of(random::<64>()?))
    }

    fn of(verifier: Secret) -> Self {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.reveal().as_bytes()));
        Self { verifier, challenge }
    }
}

/// A random secret of this many bytes, as text.
pub(crate) fn random<const BYTES: usize>() -> Result<Secret, LoginError> {
    let mut bytes = [0; BYTES];
    let source = rustls::crypto::ring::default_provider().secure_random;
    source.fill(&mut bytes).map_err(|_| LoginError::System {
        what: "get random bytes from the system",
        source: std::io::Error::other("the source of randomness failed"),
    })?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7636, appendix B.
    #[test]
    fn the_challenge_is_the_hash_of_the_verifier() {
        let pkce = Pkce::of(Secret::new("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_eq!(pkce.challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        let (one, other) = (Pkce::new().unwrap(), Pkce::new().unwrap());
        assert_ne!(one.verifier, other.verifier);
        assert_eq!(one.verifier.reveal().len(), 86);
        assert!(!format!("{one:?}").contains(one.verifier.reveal()));
    }
}
