//! The header `WWW-Authenticate` of a server that wants a login (RFC 6750, RFC 9728).

/// The longest header that is read.
const MOST_BYTES: usize = 8 * 1024;

/// The parameters of a challenge with the scheme `Bearer`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The address of the server's metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs.
    pub scope: Option<String>,
    /// The reason, such as `invalid_token`.
    pub error: Option<String>,
}

impl Challenge {
    /// The first challenge with the scheme `Bearer` in headers; without parameters if there is none.
    #[must_use]
    pub fn of<'a>(headers: impl IntoIterator<Item = &'a str>) -> Self {
        headers.into_iter().find_map(bearer).unwrap_or_default()
    }

    /// Whether a login with more scopes could help.
    #[must_use]
    pub fn is_insufficient_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// The scopes that the request needs, one by one.
    #[must_use]
    pub fn scopes(&self) -> Option<Vec<String>> {
        self.scope.as_deref().map(words)
    }
}

/// The words of a list of scopes. Only characters that the standard allows count.
pub(super) fn words(text: &str) -> Vec<String> {
    let is_scope = |word: &&str| word.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'));
    text.split_ascii_whitespace().filter(is_scope).map(str::to_owned).collect()
}

fn bearer(header: &str) -> Option<Challenge> {
    let header = header.get(..MOST_BYTES).unwrap_or(header);
    let mut rest = Rest(header);
    let mut found: Option<Challenge> = None;
    while let Some(word) = rest.token() {
        if !rest.skip('=') {
            // A word without a value begins the next challenge.
            if found.is_some() {
                break;
            }
            found = word.eq_ignore_ascii_case("bearer").then(Challenge::default);
            continue;
        }
        let value = rest.value();
        let Some(challenge) = &mut found else { continue };
        match word.to_ascii_lowercase().as_str() {
            "resource_metadata" => challenge.resource_metadata = Some(value),
            "scope" => challenge.scope = Some(value),
            "error" => challenge.error = Some(value),
            _ => {}
        }
    }
    found
}

/// The part of a header that is not read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    /// The next word, after commas and spaces.
    fn token(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start_matches([' ', '\t', ',']);
        let end = self.0.find([' ', '\t', ',', '=']).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        // A sign that belongs to no word is skipped.
        match word {
            "" if self.0.is_empty() => None,
            "" => {
                self.0 = &self.0[1..];
                self.token()
            }
            word => Some(word),
        }
    }

    fn skip(&mut self, sign: char) -> bool {
        let rest = self.0.trim_start_matches([' ', '\t']).strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// A value, quoted or not.
    fn value(&mut self) -> String {
        self.0 = self.0.trim_start_matches([' ', '\t']);
        let Some(quoted) = self.0.strip_prefix('"') else {
            let end = self.0.find([' ', '\t', ',']).unwrap_or(self.0.len());
            let (value, rest) = self.0.split_at(end);
            self.0 = rest;
            return value.to_owned();
        };
        let (mut value, mut chars) = (String::new(), quoted.char_indices());
        while let Some((at, sign)) = chars.next() {
            match sign {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return value;
                }
                '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
                sign => value.push(sign),
            }
        }
        self.0 = "";
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, [resource_metadata, scope, error]: [Option<&str>; 3]) {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let expected = Challenge { resource_metadata: text(resource_metadata), scope: text(scope), error: text(error) };
        assert_eq!(Challenge::of([header]), expected, "{header}");
    }

    #[test]
    fn parameters_are_read() {
        check("Bearer", [None; 3]);
        check(
            r#"Bearer error="invalid_token", resource_metadata="https://a/b?c=d,e", scope="x y""#,
            [Some("https://a/b?c=d,e"), Some("x y"), Some("invalid_token")],
        );
        check("bearer scope=x,error=insufficient_scope", [None, Some("x"), Some("insufficient_scope")]);
        check(r#"Bearer realm="a \"Bearer scope=no\" b", scope = "y""#, [None, Some("y"), None]);
    }

    #[test]
    fn other_schemes_are_skipped() {
        check(r#"Basic realm="x", scope="no", Bearer scope="yes", Digest scope="no""#, [None, Some("yes"), None]);
        check("Basic realm=x", [None; 3]);
        let two = ["Basic realm=x", "Bearer scope=s"];
        assert_eq!(Challenge::of(two).scopes(), Some(vec!["s".to_owned()]));
    }

    #[test]
    fn odd_headers_do_no_harm() {
        for odd in ["", "=", "====", ",,,", "Bearer scope=\"", "Bearer scope=\"\\", "Bearer =x", "Bearer \u{e9}=\u{e9}"]
        {
            let _: Challenge = Challenge::of([odd]);
        }
        check(&format!("Bearer realm=\"{}\", scope=late", "x".repeat(MOST_BYTES)), [None; 3]);
        assert_eq!(words("a \"b c\\ d  e\u{e9} f"), ["a", "d", "f"]);
    }
}
