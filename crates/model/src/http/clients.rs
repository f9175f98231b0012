//! The HTTP clients of this process: one for each host, so that everything that asks it shares its connections.
//!
//! Invariant: two requests share a client only if they go to the same origin and trust the same certificates.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Certificate, Client, Url};

use super::request_sender::without_url;
use crate::ModelError;

/// The maximum size of a file of certificates.
const MOST_CERTIFICATES: u64 = 4 * 1024 * 1024;

const MOST_REDIRECTS: usize = 5;

/// The number of clients that are kept for later requests. The oldest is dropped for another; models that use
/// it keep it.
const MOST_CLIENTS: usize = 16;

static CLIENTS: Mutex<Vec<(ClientKey, Client)>> = Mutex::new(Vec::new());

/// The settings of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClientKey {
    /// The scheme, host and port.
    origin: String,
    connect_timeout: Duration,
    protocols: Protocols,
    /// A file of certificates, with its length and modification time: a client does not notice later changes of the
    /// file.
    certificates: Option<(PathBuf, Option<(u64, SystemTime)>)>,
}

/// The versions of HTTP that a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocols {
    All,
    /// Only HTTP/1.1, whose connections can become WebSockets.
    Upgradable,
}

/// The client of this process for a host. It uses the proxies of the environment, trusts the certificates of a file
/// besides those of the system, and follows redirects on that host alone.
///
/// # Errors
/// When TLS cannot be set up.
pub fn http_client(
    url: &Url,
    connect_timeout: Duration,
    own_certificates: Option<&Path>,
) -> Result<Client, ModelError> {
    client(url, connect_timeout, own_certificates, Protocols::All)
}

/// As above, for connections that become WebSockets.
pub(super) fn upgradable_client(
    url: &Url,
    connect_timeout: Duration,
    own_certificates: Option<&Path>,
) -> Result<Client, ModelError> {
    client(url, connect_timeout, own_certificates, Protocols::Upgradable)
}

fn client(
    url: &Url,
    connect_timeout: Duration,
    own_certificates: Option<&Path>,
    protocols: Protocols,
) -> Result<Client, ModelError> {
    check_clock(url, SystemTime::now())?;
    let certificates = own_certificates.map(|path| (path.to_owned(), version_of(path)));
    let key = ClientKey { origin: url.origin().ascii_serialization(), connect_timeout, protocols, certificates };
    // Every change leaves the list complete, so a panic elsewhere does no harm.
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, known)) = clients.iter().find(|(of, _)| *of == key) {
        return Ok(known.clone());
    }
    // The lock is held meanwhile, so that threads that start together do not create a client each.
    let client = new_client(url, connect_timeout, own_certificates, protocols)?;
    if clients.len() == MOST_CLIENTS {
        clients.remove(0);
    }
    clients.push((key, client.clone()));
    Ok(client)
}

/// No certificate is valid before 1970, and the TLS library panics then.
fn check_clock(url: &Url, now: SystemTime) -> Result<(), ModelError> {
    if url.scheme() == "https" && now < SystemTime::UNIX_EPOCH {
        return Err(ModelError::Tls { source: "the clock of this machine is before 1970; set it".into() });
    }
    Ok(())
}

/// The length and modification time of a file.
fn version_of(path: &Path) -> Option<(u64, SystemTime)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

fn new_client(
    url: &Url,
    connect_timeout: Duration,
    own_certificates: Option<&Path>,
    protocols: Protocols,
) -> Result<Client, ModelError> {
    // An error means that the process has a cryptography provider already, which is all that is needed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let own = own_certificates.map(certificates).transpose()?.unwrap_or_default();
    let builder = || {
        let builder = Client::builder().connect_timeout(connect_timeout).redirect(Policy::custom(redirect));
        let builder = if protocols == Protocols::Upgradable { builder.http1_only() } else { builder };
        builder.tls_certs_merge(own.clone())
    };
    let is_plain = url.scheme() == "http";
    let built = if is_plain && is_loopback(url) {
        // A connection to this machine uses no TLS, so the time to read the system's certificates is saved.
        builder().tls_certs_only([]).no_proxy().build()
    } else if is_loopback(url) {
        builder().no_proxy().build()
    } else if is_plain {
        // A proxy may use TLS. If the system has no certificates, plain HTTP still works.
        builder().build().or_else(|_| builder().tls_certs_only([]).build())
    } else {
        builder().build()
    };
    built.map_err(|error| ModelError::Tls { source: without_url(error) })
}

/// The certificates of a file, one after the other in PEM.
fn certificates(path: &Path) -> Result<Vec<Certificate>, ModelError> {
    let failed = |why: String| ModelError::Tls { source: format!("{}: {why}", path.display()).into() };
    let pem = codex_files::read(path, MOST_CERTIFICATES).map_err(|error| failed(error.to_string()))?;
    let certificates = Certificate::from_pem_bundle(&pem).map_err(|error| failed(error.to_string()))?;
    if certificates.is_empty() {
        return Err(failed("it contains no certificates".to_owned()));
    }
    Ok(certificates)
}

/// Redirects are followed on the same host only, because the key must not be sent to another.
fn redirect(attempt: Attempt<'_>) -> Action {
    let is_same_host = attempt.previous().last().is_some_and(|previous| previous.origin() == attempt.url().origin());
    if is_same_host && attempt.previous().len() <= MOST_REDIRECTS { attempt.follow() } else { attempt.stop() }
}

/// Whether a URL points to this machine, where no proxy is needed.
pub(super) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_hosts() {
        let is = |url: &str| is_loopback(&Url::parse(url).unwrap());
        assert!(
            is("http://127.0.0.1:1/") && is("http://localhost/") && is("http://[::1]:2/") && is("http://127.9.9.9")
        );
        assert!(!is("http://10.0.0.1/") && !is("https://localhost.example.com/"));
    }

    #[test]
    fn a_clock_before_1970_is_an_error_where_certificates_count() {
        let check = |url: &str, now| check_clock(&Url::parse(url).unwrap(), now).is_ok();
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert!(check("http://127.0.0.1/", before) && check("https://example.com/", SystemTime::now()));
        assert!(!check("https://example.com/", before));
    }

    #[test]
    fn the_number_of_kept_clients_is_limited() {
        for port in 1..=2 * MOST_CLIENTS {
            http_client(&Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap(), Duration::from_secs(1), None)
                .unwrap();
        }
        assert_eq!(CLIENTS.lock().unwrap().len(), MOST_CLIENTS);
    }
}
