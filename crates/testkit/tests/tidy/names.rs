//! Names that only their authors understood do not come back.
//!
//! A name is compared word by word, so `background` is not `ground`, and names with ordinary words pass.

use syn::visit::{self, Visit};

use crate::sizes::is_test_only;
use crate::{Source, known, no_complaints, sources};

/// Words that no name may contain, with the word to use.
const BANNED: &[(&str, &str)] = &[
    ("desk", "subscriber"),
    ("shelf", "stored thread"),
    ("beside", "next to, or the name of the group"),
    ("notes", "metadata"),
    ("news", "notification, event or outgoing"),
    ("hearing", "event filter"),
    ("heard", "accepted or received"),
    ("deaf", "muted"),
    ("vintage", "protocol release"),
    ("held", "backlog, queued or reserved"),
    ("standing", "open items"),
    ("manners", "policy"),
    ("company", "concurrency"),
    ("recall", "history mode"),
    ("insisted", "explicit"),
    ("saying", "input"),
    ("pursuit", "goal"),
    ("doing", "running"),
    ("look", "capabilities or poll"),
    ("ground", "namespaces"),
    ("veil", "overlay"),
    ("rung", "level"),
    ("tidied", "cleaned up"),
    ("beginning", "initial history"),
    ("surrounding", "environment or context"),
    ("surroundings", "environment or context"),
    ("opening", "the thing that is opened"),
    ("glance", "output"),
    ("footing", "namespaces"),
    ("sight", "script"),
    ("pledge", "support"),
    ("wishes", "options"),
    ("wish", "request or query"),
    ("unsaid", "unknown"),
    ("misfit", "mismatch"),
    ("wording", "dialect"),
    ("freshen", "refresh"),
    ("summing", "compaction"),
    ("obey", "handle"),
    ("hear", "accept"),
    ("kin", "related"),
    ("sought", "query"),
    ("meant", "found or matched"),
];

/// Pairs of words that are banned only together.
const BANNED_PAIRS: &[[&str; 2]] = &[
    ["stand", "in"],
    ["made", "of"],
    ["way", "back"],
    ["loose", "ends"],
    ["own", "git"],
    ["told", "under"],
    ["goes", "on"],
    ["put", "away"],
];

/// Types whose names belong to a feature of the operating system or the protocol.
const ALLOWED: &[&str] = &["OpeningTurn"];

/// The words of a name in camel case or snake case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let starts = !letter.is_alphanumeric() || (letter.is_uppercase() && was_lower);
        if starts {
            words.push(String::new());
        }
        if letter.is_alphanumeric() {
            words.last_mut().expect("there is at least one").extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The banned word or pair of words in a name.
fn banned(name: &str) -> Option<String> {
    if ALLOWED.contains(&name) {
        return None;
    }
    let words = words(name);
    let single = BANNED.iter().find(|(banned, _)| words.iter().any(|word| word == banned));
    let pair = || BANNED_PAIRS.iter().find(|pair| words.windows(2).any(|two| two == *pair));
    single.map(|(banned, _)| (*banned).to_owned()).or_else(|| pair().map(|pair| pair.join(" ")))
}

/// The banned word in a name, with the word to use.
fn offence(name: &str) -> Option<String> {
    let word = banned(name)?;
    let instead = BANNED.iter().find(|(banned, _)| *banned == word).map(|(_, instead)| format!("; say {instead}"));
    Some(format!("`{word}` in `{name}`{}", instead.unwrap_or_default()))
}

/// The names of functions, fields and variables in product code.
#[derive(Default)]
struct SmallNames(Vec<String>);

impl<'ast> Visit<'ast> for SmallNames {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test_only(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.0.push(signature.ident.to_string());
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.0.extend(field.ident.as_ref().map(ToString::to_string));
        visit::visit_field(self, field);
    }

    fn visit_pat_ident(&mut self, name: &'ast syn::PatIdent) {
        self.0.push(name.ident.to_string());
        visit::visit_pat_ident(self, name);
    }
}

/// The file with the banned word, for each small name that contains one.
fn small_offences(source: &Source) -> Vec<String> {
    let mut names = SmallNames::default();
    if !source.is_test() {
        names.visit_file(&syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.name)));
    }
    names.0.iter().filter_map(|name| Some(format!("{} {}", source.name, banned(name)?))).collect()
}

/// The name that a line declares, if it declares a module or a type.
fn declared(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = if line.starts_with("pub") { line.split_once(' ')?.1 } else { line };
    let rest = ["mod ", "struct ", "enum ", "trait ", "type "].iter().find_map(|word| line.strip_prefix(word))?;
    rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().filter(|name| !name.is_empty())
}

fn complaints(source: &Source) -> Vec<String> {
    let parts = source.name.trim_end_matches(".rs").split('/');
    let files = parts.filter_map(|part| Some(format!("{}: {}", source.name, offence(part)?)));
    let lines = source.text.lines().enumerate();
    let types = lines.filter_map(|(number, line)| {
        let offence = offence(declared(line)?)?;
        Some(format!("{}:{}: {offence}", source.name, number + 1))
    });
    files.chain(types).collect()
}

#[test]
fn modules_files_and_types_have_names_of_the_field() {
    no_complaints(sources().iter().flat_map(complaints).collect());
}

#[test]
fn functions_fields_and_variables_have_names_of_the_field() {
    no_complaints(known::complaints("name", &known::counted(sources().iter().flat_map(small_offences))));
}

#[test]
fn no_word_is_banned_twice() {
    let twice =
        BANNED.iter().enumerate().filter(|(at, (word, _))| BANNED[..*at].iter().any(|(other, _)| other == word));
    no_complaints(twice.map(|(_, (word, _))| format!("`{word}` is in the list twice")).collect());
}

#[test]
fn a_banned_word_is_noticed_in_functions_fields_and_variables() {
    let text = "struct A { held: u8 } enum B { C { news: u8 } } impl A { fn held_back(&self, wish: u8) {} }
        fn a() { let Some(heard) = b else { return }; c(|the_desk| the_desk); let background = 1; }
        #[cfg(test)]
        mod tests { fn held() {} }"
        .to_owned();
    let found = small_offences(&Source { name: "crates/x/src/lib.rs".to_owned(), text });
    let words = ["held", "news", "held", "wish", "heard", "desk"].map(|word| format!("crates/x/src/lib.rs {word}"));
    assert_eq!(found, words);
}

#[test]
fn a_banned_name_is_noticed_in_files_modules_and_types() {
    let text =
        "pub(crate) mod the_shelf;\nstruct HeldRoots;\nenum BackgroundWork {}\npub trait StandIn {}\n// mod news"
            .to_owned();
    let found = complaints(&Source { name: "crates/x/src/news.rs".to_owned(), text });
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].starts_with("crates/x/src/news.rs: `news`"), "{found:?}");
}

#[test]
fn names_are_split_into_words() {
    assert_eq!(words("ThreadSubscriber"), ["thread", "subscriber"]);
    assert_eq!(words("shared_namespaces"), ["shared", "namespaces"]);
    assert_eq!(words("V2News"), ["v2", "news"]);
    assert_eq!(offence("background_terminal"), None);
}
