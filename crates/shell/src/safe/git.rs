//! The few forms of `git` that only show something.
//!
//! The repository's settings can still make them run a program, so they belong in the sandbox like all others.

use super::options::Options;

/// Options for what to compare and how to print it, without those that write or run something.
macro_rules! diff_options {
    ($more:literal) => {
        concat!(
            "abbrev cached check color color-moved compact-summary cumulative diff-merges dirstat \
             exit-code find-copies find-copies-harder find-renames full-index function-context \
             histogram ignore-all-space ignore-blank-lines ignore-cr-at-eol ignore-space-at-eol \
             ignore-space-change ignore-submodules merge-base minimal name-only name-status no-color \
             no-ext-diff no-patch no-prefix no-renames no-textconv numstat patch patch-with-stat \
             patience pickaxe-all pickaxe-regex quiet raw relative shortstat staged stat summary text \
             word-diff ",
            $more
        )
    };
}

const DIFF: Options = Options {
    flags: "puszRwbaWtrc",
    valued: "GS",
    attached: "UMCBD",
    long: diff_options!(""),
    long_valued: "diff-algorithm diff-filter inter-hunk-context unified word-diff-regex stat-width",
    ..Options::NONE
};

const LOG: Options = Options {
    flags: "puszRwbaWtrcgimEFP",
    valued: "GSnL",
    attached: "UMCBD",
    long: diff_options!(
        "abbrev-commit all all-match ancestry-path author-date-order branches cc cherry cherry-mark \
         cherry-pick children date-order decorate first-parent follow full-history graph \
         invert-grep left-only left-right log-size merge merges name-only no-abbrev-commit \
         no-decorate no-merges no-notes no-walk oneline parents perl-regexp pretty regexp-ignore-case \
         relative-date remotes reverse right-only root source tags topo-order walk-reflogs"
    ),
    long_valued: "after author before committer date decorate-refs diff-algorithm diff-filter encoding \
        format grep inter-hunk-context max-count max-parents min-parents since skip unified \
        until word-diff-regex",
    numbers: true,
    ..Options::NONE
};

const STATUS: Options = Options {
    flags: "sbvz",
    attached: "u",
    long: "short branch porcelain long verbose untracked-files ignored ignore-submodules show-stash \
        ahead-behind no-ahead-behind renames no-renames find-renames column no-column",
    ..Options::NONE
};

/// Without one of these, an operand is the name of a branch to create.
const BRANCH_FILTERS: &[&str] = &["--list", "--contains", "--no-contains", "--merged", "--no-merged"];

const BRANCH: Options = Options {
    flags: "arv",
    long: "all remotes list show-current verbose contains no-contains merged no-merged color \
        no-color no-column ignore-case",
    long_valued: "sort format points-at",
    ..Options::NONE
};

const LS_FILES: Options = Options {
    flags: "cdmostuz",
    valued: "x",
    long: "cached deleted modified others stage unmerged exclude-standard full-name deduplicate",
    long_valued: "exclude",
    ..Options::NONE
};

const REV_PARSE: Options = Options {
    flags: "q",
    long: "abbrev-ref absolute-git-dir git-common-dir git-dir is-bare-repository is-inside-git-dir \
        is-inside-work-tree quiet short show-cdup show-prefix show-toplevel symbolic \
        symbolic-full-name verify",
    ..Options::NONE
};

/// Whether a `git` command only shows something.
pub(super) fn git_is_safe(arguments: &[String]) -> bool {
    let arguments = match arguments {
        [first, rest @ ..] if first == "--no-pager" => rest,
        all => all,
    };
    let Some((subcommand, arguments)) = arguments.split_first() else { return false };
    // `%G…` verifies signatures with the program in `gpg.program`.
    if arguments.iter().any(|word| word.contains("%G")) {
        return false;
    }
    match subcommand.as_str() {
        "status" => STATUS.operands_of(arguments).is_some(),
        "diff" => DIFF.operands_of(arguments).is_some(),
        "log" | "show" => LOG.operands_of(arguments).is_some(),
        "ls-files" => LS_FILES.operands_of(arguments).is_some(),
        "rev-parse" => REV_PARSE.operands_of(arguments).is_some(),
        "branch" => BRANCH.operands_of(arguments).is_some_and(|operands| {
            let filters = arguments.iter().any(|word| BRANCH_FILTERS.contains(&word.as_str()));
            operands.is_empty() || filters
        }),
        _ => false,
    }
}
