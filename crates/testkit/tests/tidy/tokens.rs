//! The tokens of product code.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use crate::Source;

/// The tokens of a file without its test code; none for a file of tests.
pub(crate) fn product(source: &Source) -> TokenStream {
    if source.is_test() {
        return TokenStream::new();
    }
    let tokens = source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.name));
    without_tests(tokens)
}

/// Leaves out what follows `#[cfg(test)]`, to the end of its braces or to its semicolon.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut is_for_tests = false;
    let mut kept = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.stream().to_string() == "cfg (test)" => is_for_tests = true,
            TokenTree::Group(group) if is_for_tests => is_for_tests = group.delimiter() != Delimiter::Brace,
            TokenTree::Punct(end) if is_for_tests && end.as_char() == ';' => is_for_tests = false,
            _ if is_for_tests => {}
            TokenTree::Group(group) => {
                kept.push(TokenTree::Group(Group::new(group.delimiter(), without_tests(group.stream()))));
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

/// Whether a token is this mark.
pub(crate) fn is_mark(token: Option<&TokenTree>, mark: char) -> bool {
    matches!(token, Some(TokenTree::Punct(found)) if found.as_char() == mark)
}

/// The text of a string literal.
pub(crate) fn string(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    syn::parse_str::<syn::LitStr>(&literal.to_string()).ok().map(|text| text.value())
}

/// Calls `visit` with each level of nesting: the tokens of the file, and those of each group.
pub(crate) fn walk(tokens: TokenStream, visit: &mut impl FnMut(&[TokenTree])) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    visit(&tokens);
    for token in tokens {
        if let TokenTree::Group(group) = token {
            walk(group.stream(), visit);
        }
    }
}
