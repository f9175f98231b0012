//! Programs that only read and print, and their harmless options.

use super::options::Options;
use crate::understand::is_among;

/// The harmless options of a program that only reads and prints; `None` for any other program.
pub(super) fn options_of(program: &str) -> Option<&'static Options> {
    READERS.iter().find(|(names, _)| is_among(names, program)).map(|(_, options)| options)
}

const NONE: Options = Options::NONE;

const READERS: &[(&str, Options)] = &[
    ("pwd", Options { flags: "LP", long: "logical physical", operands: 0, ..NONE }),
    ("whoami", Options { operands: 0, ..NONE }),
    ("id", Options { flags: "aGgnruzZ", long: "group groups name real user zero context", ..NONE }),
    (
        "uname",
        Options {
            flags: "asnrvmpio",
            long: "all kernel-name nodename kernel-release kernel-version machine processor hardware-platform \
                   operating-system",
            operands: 0,
            ..NONE
        },
    ),
    ("which", Options { flags: "as", ..NONE }),
    ("basename", Options { flags: "az", valued: "s", long: "multiple zero", long_valued: "suffix", ..NONE }),
    ("dirname", Options { flags: "z", long: "zero", ..NONE }),
    (
        "readlink realpath",
        Options {
            flags: "efmnqsvz",
            long: "canonicalize canonicalize-existing canonicalize-missing no-newline quiet strip no-symlinks zero",
            long_valued: "relative-to relative-base",
            ..NONE
        },
    ),
    (
        "seq",
        Options {
            flags: "w",
            valued: "fs",
            long: "equal-width",
            long_valued: "format separator",
            numbers: true,
            ..NONE
        },
    ),
    (
        "stat",
        Options {
            flags: "Lftx",
            valued: "c",
            long: "dereference file-system terse",
            long_valued: "format printf",
            ..NONE
        },
    ),
    (
        "ls",
        Options {
            flags: "1AaBbCcDdFfGgHhiklLmNnopQqRrSstUuvXxZ",
            valued: "IwT",
            long: "all almost-all author escape ignore-backups color directory classify file-type full-time no-group \
                   group-directories-first human-readable si dereference dereference-command-line hyperlink inode \
                   kibibytes numeric-uid-gid literal hide-control-chars show-control-chars quote-name reverse \
                   recursive size context zero",
            long_valued: "block-size format hide ignore indicator-style quoting-style sort time time-style tabsize \
                          width",
            ..NONE
        },
    ),
    (
        "du",
        Options {
            flags: "abchkmsxSHLP0",
            valued: "dBt",
            long: "all apparent-size bytes total human-readable summarize one-file-system separate-dirs si dereference \
                   null inodes time",
            long_valued: "max-depth block-size threshold exclude time-style",
            ..NONE
        },
    ),
    (
        "cat",
        Options {
            flags: "AbEensTtuv",
            long: "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting",
            ..NONE
        },
    ),
    ("tac", Options { flags: "br", valued: "s", long: "before regex", long_valued: "separator", ..NONE }),
    (
        "head",
        Options {
            flags: "qvz",
            valued: "nc",
            long: "quiet silent verbose zero-terminated",
            long_valued: "lines bytes",
            numbers: true,
            ..NONE
        },
    ),
    (
        "tail",
        Options {
            flags: "fFqvz",
            valued: "ncs",
            long: "follow retry quiet silent verbose zero-terminated",
            long_valued: "lines bytes sleep-interval pid max-unchanged-stats",
            numbers: true,
            ..NONE
        },
    ),
    ("wc", Options { flags: "clmwL", long: "bytes chars lines words max-line-length", ..NONE }),
    (
        "nl",
        Options {
            flags: "p",
            valued: "bdfhilnsvw",
            long: "no-renumber",
            long_valued: "body-numbering section-delimiter footer-numbering header-numbering line-increment \
                          join-blank-lines number-format number-separator starting-line-number number-width",
            ..NONE
        },
    ),
    ("rev", NONE),
    ("tr", Options { flags: "cCdst", long: "complement delete squeeze-repeats truncate-set1", operands: 2, ..NONE }),
    (
        "grep egrep fgrep",
        Options {
            flags: "EFGPivwxcLlqsonHhbrRaIUTyu",
            valued: "efmABCdD",
            long: "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match \
                   word-regexp line-regexp count color colour files-with-matches files-without-match quiet silent \
                   no-messages only-matching byte-offset with-filename no-filename line-number initial-tab null \
                   recursive dereference-recursive text line-buffered",
            long_valued: "regexp file max-count after-context before-context context include exclude exclude-from \
                          exclude-dir binary-files directories devices label group-separator",
            numbers: true,
            ..NONE
        },
    ),
    (
        "cut",
        Options {
            flags: "nsz",
            valued: "bcdf",
            long: "complement only-delimited zero-terminated",
            long_valued: "bytes characters delimiter fields output-delimiter",
            ..NONE
        },
    ),
    ("paste", Options { flags: "sz", valued: "d", long: "serial zero-terminated", long_valued: "delimiters", ..NONE }),
    (
        // A second operand would be an output file.
        "uniq",
        Options {
            flags: "cdDiuz",
            valued: "fsw",
            long: "count repeated all-repeated group ignore-case unique zero-terminated",
            long_valued: "skip-fields skip-chars check-chars",
            operands: 1,
            ..NONE
        },
    ),
    (
        "base64",
        Options { flags: "dD", valued: "wb", long: "decode ignore-garbage", long_valued: "wrap", operands: 1, ..NONE },
    ),
    (
        "numfmt",
        Options {
            flags: "z",
            valued: "d",
            long: "grouping header zero-terminated",
            long_valued: "delimiter field format from from-unit invalid padding round suffix to to-unit",
            ..NONE
        },
    ),
    ("comm", Options { flags: "123z", long: "check-order nocheck-order total", operands: 2, ..NONE }),
    ("cmp", Options { flags: "bls", valued: "in", long: "print-bytes verbose quiet silent", ..NONE }),
    (
        "diff",
        Options {
            flags: "qsuaircbBwEZNyt",
            valued: "UCxIW",
            long: "brief report-identical-files unified context side-by-side recursive new-file ignore-case \
                   ignore-all-space ignore-space-change ignore-blank-lines text color suppress-common-lines \
                   strip-trailing-cr",
            long_valued: "exclude label width ignore-matching-lines",
            operands: 2,
            ..NONE
        },
    ),
];
