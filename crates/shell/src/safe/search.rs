//! The harmless uses of `find` and `rg`.

use super::options::Options;
use crate::understand::is_among;

/// Tests and actions of `find` without an argument.
const ALONE: &str = "! ( ) , -a -and -daystart -depth -empty -executable -false -follow -ls -mount -nogroup -noleaf -not -nouser \
    -o -or -print -print0 -prune -quit -readable -true -warn -nowarn -writable -xdev";

/// Tests and actions of `find` with one argument.
const WITH_ARGUMENT: &str = "-amin -anewer -atime -cmin -cnewer -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex \
    -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -path -perm -printf -regex \
    -regextype -samefile -size -type -uid -used -user -wholename -xtype";

/// Whether a `find` only prints its results.
pub(super) fn find_is_safe(arguments: &[String]) -> bool {
    let mut words = arguments.iter().map(String::as_str);
    let mut in_expression = false;
    while let Some(word) = words.next() {
        let newer = word.strip_prefix("-newer").is_some_and(|kinds| {
            kinds.len() == 2 && kinds.bytes().all(|kind| matches!(kind, b'a' | b'B' | b'c' | b'm' | b't'))
        });
        if is_among(ALONE, word) {
            in_expression = true;
        } else if is_among(WITH_ARGUMENT, word) || newer {
            in_expression = true;
            if words.next().is_none() {
                return false;
            }
        } else if in_expression || (word.starts_with('-') && !matches!(word, "-H" | "-L" | "-P" | "-E")) {
            return false;
        }
    }
    true
}

/// Options of `rg` that run nothing and read only the files to search.
pub(super) const RG: Options = Options {
    flags: "ivwxFclnNHIoSsuUaLqhpPVb.0",
    valued: "ABCefgjmMtTrEd",
    attached: "",
    long: "binary block-buffered byte-offset case-sensitive column count count-matches crlf files \
        files-with-matches files-without-match fixed-strings follow glob-case-insensitive \
        heading help hidden ignore-case ignore-file-case-insensitive include-zero invert-match \
        json line-buffered line-number line-regexp mmap multiline multiline-dotall no-config \
        no-filename no-heading no-ignore no-ignore-dot no-ignore-exclude no-ignore-files \
        no-ignore-global no-ignore-messages no-ignore-parent no-ignore-vcs no-line-number \
        no-messages no-mmap no-require-git no-unicode null null-data one-file-system \
        only-matching passthru passthrough pcre2 pretty quiet smart-case stats stop-on-nonmatch \
        text trim type-list unrestricted version vimgrep with-filename word-regexp",
    long_valued: "after-context before-context color colors context context-separator encoding engine \
        field-context-separator field-match-separator file glob iglob max-columns max-count \
        max-depth max-filesize path-separator regexp replace sort sortr threads type type-add \
        type-clear type-not",
    numbers: false,
    operands: usize::MAX,
};
