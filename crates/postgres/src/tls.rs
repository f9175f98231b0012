//! TLS to the database: verified by the certificates of the system, and those of a file.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;

use crate::errors::PostgresError;

/// The maximum size of a file of certificates.
const MOST_CERTIFICATES: u64 = 4 << 20;

/// Makes TLS connections.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    pub(crate) fn new(certificates: Option<&Path>) -> Result<Self, PostgresError> {
        let failed = |problem: String| PostgresError::Tls { problem };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let own = match certificates {
            Some(path) => read(path).map_err(|why| failed(format!("{}: {why}", path.display())))?,
            None => Vec::new(),
        };
        let verifier = verifier(own, &provider).map_err(|error| failed(error.to_string()))?;
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| failed(error.to_string()))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        Ok(Self { config: Arc::new(builder.with_no_client_auth()) })
    }
}

/// Verifies like the programs of this system, and trusts further roots.
fn verifier(own: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<Verifier, rustls::Error> {
    if own.is_empty() {
        Verifier::new(Arc::clone(provider))
    } else {
        Verifier::new_with_extra_roots(own, Arc::clone(provider))
    }
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = codex_files::read(path, MOST_CERTIFICATES).map_err(|error| error.to_string())?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| error.to_string())?;
    if certificates.is_empty() { Err("it contains no certificates".to_owned()) } else { Ok(certificates) }
}

impl<S> MakeTlsConnect<S> for Tls
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, domain: &str) -> io::Result<Connect> {
        let name = ServerName::try_from(domain.to_owned()).map_err(io::Error::other)?;
        Ok(Connect { connector: TlsConnector::from(Arc::clone(&self.config)), name })
    }
}

/// One handshake.
pub(crate) struct Connect {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl<S> TlsConnect<S> for Connect
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move { Ok(Stream(Box::new(self.connector.connect(self.name, stream).await?))) })
    }
}

/// An encrypted stream.
pub(crate) struct Stream<S>(Box<RustlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The server is authenticated by its certificate; without a binding, SCRAM is used as it is.
        ChannelBinding::none()
    }
}
