//! TLS with a certificate that only the test's own authority vouches for.

#![expect(clippy::expect_used, reason = "a test cannot continue without it")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::{io, thread};

use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, crypto::ring};

/// A file of the test's certificates: `ca.pem`, the authority; `server.pem` and `server.key`, for `localhost`.
#[must_use]
pub fn tls_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tls").join(name)
}

/// Accepts TLS connections to `localhost` and offers these protocols, such as `h2`.
///
/// # Panics
/// If the certificates cannot be read.
#[must_use]
pub fn tls_acceptor(protocols: &[&str]) -> TlsAcceptor {
    let certificate = CertificateDer::from_pem_file(tls_file("server.pem")).expect("the certificate is there");
    let key = PrivateKeyDer::from_pem_file(tls_file("server.key")).expect("the key is there");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().expect("the versions are known");
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate], key).expect("the key fits");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsAcceptor::from(Arc::new(config))
}

/// A server that takes TLS connections and passes their bytes to a plain server. It stops when dropped.
#[derive(Debug)]
pub struct TlsFront {
    port: u16,
    /// Dropping it stops the server.
    _stop: oneshot::Sender<()>,
}

impl TlsFront {
    /// Starts a server in front of another one, given as `http://127.0.0.1:PORT` with any path.
    ///
    /// # Panics
    /// If the address is wrong or the server cannot start.
    #[must_use]
    pub fn of(plain_url: &str) -> Self {
        let plain: SocketAddr =
            plain_url.split('/').nth(2).and_then(|host| host.parse().ok()).expect("a plain address");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let port = listener.local_addr().expect("it has an address").port();
        let (stop, stopped) = oneshot::channel::<()>();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
            runtime.block_on(async {
                tokio::select! {
                    served = serve(listener, plain) => served.expect("the listener works"),
                    _ = stopped => {}
                }
            });
        });
        Self { port, _stop: stop }
    }

    /// Its address, such as `https://localhost:40000`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }
}

async fn serve(listener: TcpListener, plain: SocketAddr) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let acceptor = tls_acceptor(&["http/1.1"]);
    loop {
        let (socket, _) = listener.accept().await?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that does not trust the certificate hangs up.
            let mut secure = acceptor.accept(socket).await?;
            let mut plain = TcpStream::connect(plain).await?;
            copy_bidirectional(&mut secure, &mut plain).await
        });
    }
}
