//! Shared test code: a fake model that serves scripts over real HTTP, a fake login issuer, an MCP
//! server, one that wants a login, TLS, and a private PostgreSQL cluster.
//!
//! Invariant: used by tests only, so it panics where a test could not continue.

mod answer_wire;
mod fake_issuer;
mod fake_model;
mod http;
mod login_ports;
pub mod mcp_server;
mod pgbouncer;
mod postgres_cluster;
mod protected_server;
mod socket;
mod tls;

pub use fake_issuer::{FakeIssuer, IssuerAnswer};
pub use fake_model::{FakeModel, Options, Request};
pub use login_ports::LoginPorts;
pub use pgbouncer::Pooler;
pub use postgres_cluster::{PostgresCluster, postgres_cluster, postgres_cluster_with_tls};
pub use protected_server::{ProtectedAnswer, ProtectedOptions, ProtectedRequest, ProtectedServer};
pub use tls::{TlsFront, tls_acceptor, tls_file};
