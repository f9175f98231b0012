//! Logins against an issuer of our own.

mod browser;
mod canary;
mod device;
mod external;
mod real_issuer;
mod renewal;
mod world;
