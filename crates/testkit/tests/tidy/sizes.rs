//! Files and functions stay small enough to read at once.

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::{Source, no_complaints, sources};

/// The maximum number of lines of code, without blank lines, comments and tests.
const FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 60;
/// Structs with more fields than this are printed, as a hint to whoever looks for what has grown.
const PRINTED_FIELDS: usize = 15;

/// Files that hold a table of data and nothing else. They may be longer, and one that is not has to be removed from the
/// list.
const TABLES: &[&str] = &[];

/// The measurements of one file.
#[derive(Default)]
struct Measure {
    name: String,
    /// The first and last lines of test modules.
    tests: Vec<(usize, usize)>,
    /// Structs with many fields, and how many they have.
    structs: Vec<(String, usize)>,
    complaints: Vec<String>,
}

fn lines(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

/// Whether an item is compiled for tests only.
pub(crate) fn is_test_only(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

impl Measure {
    fn function(&mut self, name: &syn::Ident, span: Span) {
        let lines = lines(span);
        if lines > FUNCTION_LINES {
            let (file, line) = (&self.name, span.start().line);
            self.complaints.push(format!("{file}:{line}: fn {name} has {lines} lines, {FUNCTION_LINES} are allowed"));
        }
    }
}

impl<'ast> Visit<'ast> for Measure {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if is_test_only(&module.attrs) {
            self.tests.push((module.span().start().line, module.span().end().line));
        } else {
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, function.span());
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, function.span());
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        if item.fields.len() > PRINTED_FIELDS {
            self.structs.push((item.ident.to_string(), item.fields.len()));
        }
    }
}

/// The number of lines of code: those that are not blank, a comment, or in a test module.
fn code_lines(text: &str, tests: &[(usize, usize)]) -> usize {
    let is_code = |number: usize, line: &str| {
        let line = line.trim_start();
        !line.is_empty()
            && !line.starts_with("//")
            && !tests.iter().any(|(first, last)| (*first..=*last).contains(&number))
    };
    text.lines().enumerate().filter(|(index, line)| is_code(index + 1, line)).count()
}

fn measure(source: &Source) -> Measure {
    let file = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.name));
    let mut measure = Measure { name: source.name.clone(), ..Measure::default() };
    if !source.is_test() {
        measure.visit_file(&file);
    }
    let lines = code_lines(&source.text, &measure.tests);
    let is_table = TABLES.contains(&source.name.as_str());
    if lines > FILE_LINES && !is_table {
        measure.complaints.push(format!("{}: {lines} lines of code, {FILE_LINES} are allowed", source.name));
    }
    if lines <= FILE_LINES && is_table {
        measure.complaints.push(format!("{}: {lines} lines of code, so take it off the list", source.name));
    }
    measure
}

#[test]
#[expect(clippy::print_stdout, reason = "a list for whoever runs the test with --nocapture")]
fn files_and_functions_are_small() {
    let measures: Vec<Measure> = sources().iter().map(measure).collect();
    let structs = measures.iter().flat_map(|file| file.structs.iter().map(|(name, fields)| (fields, name, &file.name)));
    let mut structs: Vec<_> = structs.collect();
    structs.sort();
    for (fields, name, file) in structs.iter().rev() {
        println!("{file}: struct {name} has {fields} fields");
    }
    no_complaints(measures.into_iter().flat_map(|file| file.complaints).collect());
}

#[test]
fn a_long_function_is_noticed_and_test_modules_are_not_counted() {
    let body = "let x = 1;\n".repeat(FUNCTION_LINES);
    let text = format!("fn long() {{\n{body}}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "use x;\n".repeat(FILE_LINES));
    let measured = measure(&Source { name: "crates/x/src/lib.rs".to_owned(), text });
    assert_eq!(measured.complaints.len(), 1, "{:?}", measured.complaints);
    assert!(measured.complaints[0].contains("fn long has 62 lines"), "{:?}", measured.complaints);
}

#[test]
fn comments_and_blank_lines_are_not_code() {
    let text = "//! Words.\n\nuse x;\n\n    // Why.\nfn a() {}\n".repeat(FILE_LINES / 2);
    assert_eq!(code_lines(&text, &[]), FILE_LINES);
    let source = |text: String| Source { name: "crates/x/src/lib.rs".to_owned(), text };
    assert!(measure(&source(text.replace("//! Words.\n", ""))).complaints.is_empty());
    let longer = measure(&source("use x;\n".repeat(FILE_LINES + 1)));
    assert_eq!(longer.complaints, ["crates/x/src/lib.rs: 801 lines of code, 800 are allowed"]);
}
