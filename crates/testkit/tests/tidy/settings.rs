//! Configuration keys that are read outside of their crate.

use crate::{no_complaints, sources};

/// The calls that look up a feature, or a key of the tree, by name.
const ASKED: &[(&str, &str)] = &[("features.get(\"", "features."), ("tree.get(&[\"", "")];

#[test]
fn keys_that_other_crates_read_are_in_the_table() {
    let all = sources();
    let table = all.iter().find(|source| source.name == "crates/config/src/known.rs").expect("the table is there");
    let mut complaints = Vec::new();
    let mut found = 0;
    let others = all.iter().filter(|source| !source.name.starts_with("crates/config/") && !source.is_test());
    for source in others {
        for (asked, prefix) in ASKED {
            for rest in source.text.split(asked).skip(1) {
                let key = format!("\"{prefix}{}", rest.split('"').next().unwrap_or_default());
                found += 1;
                // A whole key, or a table of keys.
                if !["\"", ".*"].iter().any(|end| table.text.contains(&format!("{key}{end}"))) {
                    complaints.push(format!("{}: {key}\" is not in crates/config/src/known.rs", source.name));
                }
            }
        }
    }
    assert!(found > 3, "only {found} places were found");
    no_complaints(complaints);
}
