//! Files, functions and structs stay small enough to read at once.

use std::collections::BTreeMap;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::{Source, no_complaints, sources};

const FILE_LINES: usize = 500;
const TEST_FILE_LINES: usize = 800;
const FUNCTION_LINES: usize = 60;
const STRUCT_FIELDS: usize = 20;
const CRATE_LINES: usize = 8_000;

/// Crates that are larger than that, and the maximum number of lines of each until it is split. One that has shrunk
/// below [`CRATE_LINES`] has to be removed from the list.
const LARGE_CRATES: &[(&str, usize)] = &[];

/// The measurements of one file.
#[derive(Default)]
struct Measure {
    name: String,
    /// Lines in test modules.
    test_lines: usize,
    complaints: Vec<String>,
}

fn lines(span: Span) -> usize {
    span.end().line - span.start().line + 1
}

fn is_test_only(attributes: &[syn::Attribute]) -> bool {
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
            self.test_lines += lines(module.span());
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
        if item.fields.len() > STRUCT_FIELDS {
            let (file, count) = (&self.name, item.fields.len());
            self.complaints
                .push(format!("{file}: struct {} has {count} fields, {STRUCT_FIELDS} are allowed", item.ident));
        }
    }
}

fn measure(source: &Source) -> Measure {
    let file = syn::parse_file(&source.text).unwrap_or_else(|error| panic!("{}: {error}", source.name));
    let mut measure = Measure { name: source.name.clone(), ..Measure::default() };
    if !source.is_test() {
        measure.visit_file(&file);
    }
    let (lines, limit) = if source.is_test() {
        (source.text.lines().count(), TEST_FILE_LINES)
    } else {
        (source.text.lines().count() - measure.test_lines, FILE_LINES)
    };
    if lines > limit {
        measure.complaints.push(format!("{}: {lines} lines, {limit} are allowed", source.name));
    }
    measure
}

#[test]
fn files_functions_and_structs_are_small() {
    no_complaints(sources().iter().flat_map(|source| measure(source).complaints).collect());
}

#[test]
fn crates_are_small() {
    let mut crates: BTreeMap<String, usize> = BTreeMap::new();
    for source in sources().iter().filter(|source| !source.is_test()) {
        let name = source.name.split('/').nth(1).unwrap_or_default().to_owned();
        *crates.entry(name).or_default() += source.text.lines().count() - measure(source).test_lines;
    }
    let complaints = crates.into_iter().filter_map(|(name, lines)| {
        let exception = LARGE_CRATES.iter().find(|(large, _)| *large == name).map(|(_, limit)| *limit);
        let limit = exception.unwrap_or(CRATE_LINES);
        if lines > limit {
            return Some(format!("{name}: {lines} lines, {limit} are allowed"));
        }
        let is_mended = exception.is_some() && lines <= CRATE_LINES;
        is_mended.then(|| format!("{name}: {lines} lines, so take it off the list"))
    });
    no_complaints(complaints.collect());
}

#[test]
fn a_long_function_is_noticed_and_test_modules_are_not_counted() {
    let body = "let x = 1;\n".repeat(FUNCTION_LINES);
    let text = format!("fn long() {{\n{body}}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "// x\n".repeat(FILE_LINES));
    let measured = measure(&Source { name: "crates/x/src/lib.rs".to_owned(), text });
    assert_eq!(measured.complaints.len(), 1, "{:?}", measured.complaints);
    assert!(measured.complaints[0].contains("fn long has 62 lines"), "{:?}", measured.complaints);
}
