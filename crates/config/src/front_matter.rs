//! Front matter: the lines between two `---` at the start of a Markdown file.

/// A text with its front matter separated.
pub(crate) struct FrontMatter<'a> {
    lines: &'a str,
    /// The text after it.
    pub(crate) content: &'a str,
}

impl<'a> FrontMatter<'a> {
    /// Splits a text. One without front matter is all content.
    pub(crate) fn split(text: &'a str) -> Self {
        let rest = text.strip_prefix("---\n").or_else(|| text.strip_prefix("---\r\n"));
        let split = rest.and_then(|rest| rest.split_once("\n---\n").or_else(|| rest.split_once("\n---\r\n")));
        let (lines, content) = split.unwrap_or(("", text));
        Self { lines, content }
    }

    /// The value of a field; dashes and underscores in its name are equivalent.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut fields = self.lines.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(key, _)| key.trim().replace('-', "_") == name)?;
        let value = value.trim().trim_matches(['"', '\'']);
        (!value.is_empty()).then(|| value.to_owned())
    }
}
