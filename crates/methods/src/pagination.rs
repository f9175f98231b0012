//! Lists that are returned page by page; a cursor is the number of entries before the page.

/// The error for a cursor that no page has returned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid cursor: {0}")]
pub struct CursorError(String);

/// The entries of one page, and the cursor of the next if there is one. Without a limit, all remaining entries are one
/// page.
pub fn page<T>(
    entries: Vec<T>,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<(Vec<T>, Option<String>), CursorError> {
    let total = entries.len();
    let start = match cursor {
        Some(cursor) => {
            let start = cursor.parse().ok().filter(|start| *start <= total);
            start.ok_or_else(|| CursorError(cursor.to_owned()))?
        }
        None => 0,
    };
    // With empty pages, a client would never reach the end.
    let limit = limit.map_or(usize::MAX, |limit| usize::try_from(limit.max(1)).unwrap_or(usize::MAX));
    let end = start.saturating_add(limit).min(total);
    let next = (end < total).then(|| end.to_string());
    Ok((entries.into_iter().skip(start).take(end - start).collect(), next))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn broken_cursors_are_refused() {
        for cursor in ["nonsense", "", "-1", "4", "99999999999999999999999"] {
            let error = page(vec![1, 2, 3], Some(cursor), None).unwrap_err();
            assert_eq!(error.to_string(), format!("invalid cursor: {cursor}"));
        }
        assert_eq!(page(vec![1, 2, 3], Some("3"), None), Ok((vec![], None)));
    }

    proptest! {
        #[test]
        fn pages_together_are_the_list(total in 0..50usize, limit in prop::option::of(0..10u32)) {
            let list: Vec<usize> = (0..total).collect();
            let (mut found, mut cursor) = (Vec::new(), None);
            for _ in 0..=total {
                let (entries, next) = page(list.clone(), cursor.as_deref(), limit).unwrap();
                found.extend(entries);
                cursor = next;
                if cursor.is_none() {
                    break;
                }
            }
            prop_assert_eq!(found, list);
        }
    }
}
