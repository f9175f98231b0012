//! The text of a saved prompt with the arguments of the person in it.
//!
//! `$1` to `$9` are arguments by their place, `$ARGUMENTS` is all of them, `$NAME` is the one given as `NAME=value`, and
//! `$$` is a dollar sign.

use std::collections::BTreeMap;

/// Puts arguments into a prompt. The error is for people.
pub fn expand(content: &str, arguments: &str) -> Result<String, String> {
    let words = split(arguments)?;
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
    };
    let named: BTreeMap<&str, &str> =
        words.iter().filter_map(|word| word.split_once('=')).filter(|(name, _)| is_name(name)).collect();
    let (mut text, mut rest) = (String::new(), content);
    while let Some((before, after)) = rest.split_once('$') {
        text.push_str(before);
        let length = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
        let name = &after[..length];
        rest = after;
        if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            rest = after;
        } else if name == "ARGUMENTS" {
            text.push_str(arguments.trim());
            rest = &after[length..];
        } else if let Some(place) = after.chars().next().and_then(|c| c.to_digit(10)).filter(|place| *place > 0) {
            text.push_str(words.get(place as usize - 1).map_or("", String::as_str));
            rest = &after[1..];
        } else if is_name(name) {
            let value = named.get(name).ok_or_else(|| format!("this prompt needs {name}=VALUE"))?;
            text.push_str(value);
            rest = &after[length..];
        } else {
            text.push('$');
        }
    }
    text.push_str(rest);
    Ok(text)
}

/// Words, which quotes keep together.
fn split(arguments: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in arguments.chars() {
        match quote {
            Some(mark) if c == mark => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quotation mark is not closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_put_where_they_belong() {
        for (content, arguments, expected) in [
            ("Review $1 for $2.", "src bugs", "Review src for bugs."),
            ("Do: $ARGUMENTS!", " a  b ", "Do: a  b!"),
            ("$FILE is $$5, $path", "FILE='a b'", "a b is $5, $path"),
            ("$1$2", "one", "one"),
            ("none", "", "none"),
            ("€ $", "", "€ $"),
        ] {
            assert_eq!(expand(content, arguments).as_deref(), Ok(expected), "{content}");
        }
        assert_eq!(expand("$FILE", "x").unwrap_err(), "this prompt needs FILE=VALUE");
        assert_eq!(expand("$1", "'x").unwrap_err(), "a quotation mark is not closed");
    }
}
