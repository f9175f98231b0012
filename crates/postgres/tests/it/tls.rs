//! TLS to a real server whose certificate only the test's own authority vouches for.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use codex_postgres::{PostgresStore, StoreOptions};
use codex_testkit::{postgres_cluster_with_tls, tls_file};

#[test]
fn certificates_and_host_names_are_verified() {
    let Some((_cluster, port)) = postgres_cluster_with_tls() else { return };
    let attempt = |url: String, certificates: Option<&str>| {
        let mut options = StoreOptions::at(url);
        (options.certificates, options.patience) = (certificates.map(tls_file), Duration::from_secs(20));
        PostgresStore::open(&options).map(drop).map_err(|error| format!("{error}"))
    };
    let url = |host: &str, mode: &str| format!("postgres://postgres@{host}:{port}/postgres?sslmode={mode}");
    for mode in ["require", "verify-ca", "verify-full"] {
        attempt(url("localhost", mode), Some("ca.pem")).expect("the authority vouches for localhost");
        let unknown = attempt(url("localhost", mode), None).expect_err("nobody vouches for the server");
        assert!(unknown.contains("UnknownIssuer"), "{unknown}");
        let elsewhere = format!("{}&hostaddr=127.0.0.1", url("elsewhere.example", mode));
        let other = attempt(elsewhere, Some("ca.pem")).expect_err("the certificate is for localhost");
        assert!(other.contains("not valid for name") || other.contains("NotValidForName"), "{other}");
        for shown in [&unknown, &other] {
            assert!(shown.starts_with("the database ") && !shown.contains('\n'), "{shown}");
            assert!(shown.ends_with("check the host name in store.url, and SSL_CERT_FILE"), "{shown}");
        }
    }
}

#[test]
fn a_server_without_tls_is_refused_where_tls_is_needed() {
    // It answers the request for TLS as PostgreSQL does with `ssl = off`.
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = server.local_addr().expect("it has one").port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = server.accept() {
            let mut request = [0; 8];
            stream.read_exact(&mut request).expect("it asks for TLS");
            stream.write_all(b"N").expect("it reads");
        }
    });
    let mut options = StoreOptions::at(format!("postgres://u:canary@localhost:{port}/x?sslmode=require"));
    options.patience = Duration::from_secs(5);
    let error = PostgresStore::open(&options).expect_err("it has no TLS").to_string();
    assert!(error.ends_with("server does not support TLS; set `ssl = on` in its postgresql.conf"), "{error}");
    assert!(!error.contains('\n') && !error.contains("canary"), "{error}");
}
