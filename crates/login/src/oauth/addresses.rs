//! The places of metadata, and the addresses that may be used at all.

use reqwest::Url;

use super::OauthError;

/// The addresses that a server may name: https everywhere, and http on this machine if the server itself is there.
/// Otherwise a server elsewhere could have requests sent to this machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    loopback: bool,
}

impl Allowed {
    pub(super) fn by(server: &Url) -> Self {
        Self { loopback: is_loopback(server) }
    }

    /// The address of a server that tokens may be sent to.
    pub(super) fn server(text: &str) -> Result<Url, OauthError> {
        let insecure = |_| OauthError::Insecure { url: shown(text) };
        let url = Url::parse(text).map_err(insecure)?;
        Self::by(&url).check(text)
    }

    /// An address that may be used.
    pub(super) fn check(self, text: &str) -> Result<Url, OauthError> {
        let insecure = || OauthError::Insecure { url: shown(text) };
        let url = Url::parse(text).map_err(|_| insecure())?;
        let is_safe = match url.scheme() {
            "https" => self.loopback || !is_loopback(&url),
            "http" => self.loopback && is_loopback(&url),
            _ => false,
        };
        let is_plain = url.username().is_empty() && url.password().is_none();
        if is_safe && is_plain { Ok(url) } else { Err(insecure()) }
    }
}

/// A text of a server for an error.
pub(super) fn shown(text: &str) -> String {
    text.chars().filter(|sign| !sign.is_control()).take(200).collect()
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The well-known places of the metadata of a server (RFC 9728 §3.1): for its path, then for its host.
pub(super) fn resource_metadata(server: &Url) -> Vec<Url> {
    let path = server.path().trim_end_matches('/');
    let mut places = vec![at(server, &format!("/.well-known/oauth-protected-resource{path}"))];
    if !path.is_empty() {
        places.push(at(server, "/.well-known/oauth-protected-resource"));
    }
    places
}

/// The well-known places of the metadata of an authorization server: RFC 8414 §3.1, then `OpenID` Connect in both forms.
pub(super) fn issuer_metadata(issuer: &Url) -> Vec<Url> {
    let path = issuer.path().trim_end_matches('/');
    let mut places = vec![
        at(issuer, &format!("/.well-known/oauth-authorization-server{path}")),
        at(issuer, &format!("/.well-known/openid-configuration{path}")),
    ];
    if !path.is_empty() {
        places.push(at(issuer, &format!("{path}/.well-known/openid-configuration")));
    }
    places
}

/// Another path on the same host.
pub(super) fn at(url: &Url, path: &str) -> Url {
    let mut other = url.clone();
    other.set_path(path);
    other.set_query(None);
    other.set_fragment(None);
    other
}

/// The name of a server as a resource (RFC 8707): without a fragment, and without a slash that only stands for the host.
pub(super) fn resource(server: &Url) -> String {
    let mut resource = server.clone();
    resource.set_fragment(None);
    let text = resource.to_string();
    if resource.path() == "/" && resource.query().is_none() { text.trim_end_matches('/').to_owned() } else { text }
}

/// Whether metadata for a resource is for this server: the same origin, and a path that leads to it.
pub(super) fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let own = server.path().trim_end_matches('/');
    let path = resource.path().trim_end_matches('/');
    let rest = own.strip_prefix(path);
    resource.origin() == server.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    fn shown(urls: Vec<Url>) -> Vec<String> {
        urls.into_iter().map(|url| url.to_string()).collect()
    }

    #[test]
    fn metadata_of_a_server_is_looked_for_at_its_path_first() {
        assert_eq!(
            shown(resource_metadata(&url("https://a.example/x/mcp/?q=1"))),
            [
                "https://a.example/.well-known/oauth-protected-resource/x/mcp",
                "https://a.example/.well-known/oauth-protected-resource"
            ]
        );
        let root = ["https://a.example/.well-known/oauth-protected-resource"];
        assert_eq!(shown(resource_metadata(&url("https://a.example/"))), root);
    }

    #[test]
    fn metadata_of_an_issuer_is_looked_for_in_the_order_of_the_standards() {
        assert_eq!(
            shown(issuer_metadata(&url("https://a.example/t1"))),
            [
                "https://a.example/.well-known/oauth-authorization-server/t1",
                "https://a.example/.well-known/openid-configuration/t1",
                "https://a.example/t1/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            shown(issuer_metadata(&url("https://a.example"))),
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn only_https_and_this_machine_are_used() {
        let (far, near) = (Allowed::by(&url("https://a.example/mcp")), Allowed::by(&url("http://127.0.0.1:1/mcp")));
        for fine in ["https://b.example/x", "https://10.0.0.1/"] {
            assert!(far.check(fine).is_ok() && near.check(fine).is_ok(), "{fine}");
        }
        for local in ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]:2/", "https://localhost/"] {
            assert!(near.check(local).is_ok(), "{local}");
            assert!(far.check(local).is_err(), "a server elsewhere names {local}");
        }
        for odd in [
            "http://b.example/",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "$(id)",
            "https://user@b.example/",
            "http://localhost.b.example/",
            "ms-settings:x",
        ] {
            assert!(far.check(odd).is_err() && near.check(odd).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_resource_covers_what_is_below_it() {
        let server = url("https://a.example/x/mcp");
        for (resource, expected) in [
            ("https://a.example/x/mcp", true),
            ("https://a.example/x/mcp/", true),
            ("https://a.example/x", true),
            ("https://a.example", true),
            ("https://a.example/x/mc", false),
            ("https://a.example/x/mcp/y", false),
            ("https://b.example/x/mcp", false),
            ("http://a.example/x/mcp", false),
            ("mcp", false),
        ] {
            assert_eq!(covers(resource, &server), expected, "{resource}");
        }
        assert_eq!(resource(&url("https://A.example:443/#x")), "https://a.example");
        assert_eq!(resource(&server), "https://a.example/x/mcp");
    }
}
