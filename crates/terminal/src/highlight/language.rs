//! The tables of the languages: their comments, their quotes and their words.

/// A language, or a family of languages that look alike.
#[derive(Debug)]
pub(super) struct Language {
    /// Its names in Markdown, which are also the endings of its files, in lower case.
    pub(super) names: &'static str,
    /// The starts of a comment up to the end of its line.
    pub(super) line_comments: &'static [&'static str],
    pub(super) block_comment: Option<BlockComment>,
    /// The longest mark comes first.
    pub(super) quotes: &'static [Quote],
    /// Its words, with blanks in between.
    pub(super) keywords: &'static str,
    /// Characters of words besides letters, digits and underscores.
    pub(super) also_in_words: &'static str,
    /// The mark behind a key, in languages of data.
    pub(super) after_keys: Option<char>,
    pub(super) rules: Rules,
}

/// The peculiarities of a language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a question about a language of its own")]
pub(super) struct Rules {
    /// Words are the same in capital letters.
    pub(super) ignores_case: bool,
    /// A mark starts a comment only at the start of a word, as in `$#` of a shell.
    pub(super) comments_begin_words: bool,
    /// Names before `(` are those of functions.
    pub(super) has_calls: bool,
    /// Names that begin with a capital letter are those of types.
    pub(super) has_types: bool,
    /// Marks such as `'a` and `r#"…"#`.
    pub(super) is_rust: bool,
    /// `$name` is a variable.
    pub(super) has_dollars: bool,
    /// `@name` and `#name` are words of the language, such as decorators and directives.
    pub(super) has_marked_words: bool,
}

/// The marks around a comment over several lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BlockComment {
    pub(super) start: &'static str,
    pub(super) end: &'static str,
    pub(super) nests: bool,
}

/// The marks around a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Quote {
    pub(super) start: &'static str,
    pub(super) end: &'static str,
    /// A backslash takes the meaning from the character behind it.
    pub(super) has_escapes: bool,
    /// It may go on in the next line.
    pub(super) is_long: bool,
}

const fn short(mark: &'static str) -> Quote {
    Quote { start: mark, end: mark, has_escapes: true, is_long: false }
}

const fn long(mark: &'static str) -> Quote {
    Quote { start: mark, end: mark, has_escapes: true, is_long: true }
}

const fn verbatim(mark: &'static str) -> Quote {
    Quote { start: mark, end: mark, has_escapes: false, is_long: true }
}

const fn block(start: &'static str, end: &'static str) -> BlockComment {
    BlockComment { start, end, nests: false }
}

const fn nested(start: &'static str, end: &'static str) -> BlockComment {
    BlockComment { start, end, nests: true }
}

const NO_RULES: Rules = Rules {
    ignores_case: false,
    comments_begin_words: false,
    has_calls: false,
    has_types: false,
    is_rust: false,
    has_dollars: false,
    has_marked_words: false,
};
const CODE: Rules = Rules { has_calls: true, has_types: true, has_marked_words: true, ..NO_RULES };
const SCRIPT: Rules = Rules { comments_begin_words: true, has_dollars: true, ..NO_RULES };

/// A language with the comments and the quotes of C.
const C: Language = Language {
    names: "c h",
    line_comments: &["//"],
    block_comment: Some(block("/*", "*/")),
    quotes: &[short("\""), short("'")],
    keywords: "auto bool break case char const continue default do double else enum extern false float for goto if \
               inline int long nullptr register return short signed sizeof static struct switch true typedef union \
               unsigned void volatile while NULL",
    also_in_words: "",
    after_keys: None,
    rules: CODE,
};

/// A language of data.
const DATA: Language = Language {
    names: "ini conf cfg properties editorconfig",
    line_comments: &["#", ";"],
    block_comment: None,
    quotes: &[short("\""), short("'")],
    keywords: "true false null yes no on off",
    also_in_words: "-.",
    after_keys: Some('='),
    rules: Rules { comments_begin_words: true, ..NO_RULES },
};

/// A language of commands.
const SHELL: Language = Language {
    names: "sh bash zsh ksh fish shell console shellsession ebuild",
    line_comments: &["#"],
    block_comment: None,
    quotes: &[short("\""), Quote { start: "'", end: "'", has_escapes: false, is_long: false }],
    keywords: "alias begin break case cd continue declare do done echo elif else end esac eval exec exit export fi for \
               function if in local not or and read return select set shift source test then trap true false unset \
               until while",
    also_in_words: "-",
    after_keys: None,
    rules: SCRIPT,
};

const PYTHON: Language = Language {
    names: "python py pyi python3 starlark bzl",
    line_comments: &["#"],
    block_comment: None,
    quotes: &[long("\"\"\""), long("'''"), short("\""), short("'")],
    keywords: "and as assert async await break case class continue def del elif else except False finally for from \
               global if import in is lambda match None nonlocal not or pass raise return self True try while with \
               yield",
    also_in_words: "",
    after_keys: None,
    rules: CODE,
};

const LISP: Language = Language {
    names: "lisp cl el elisp scheme scm racket rkt clojure clj cljs edn",
    line_comments: &[";"],
    block_comment: Some(block("#|", "|#")),
    quotes: &[long("\"")],
    keywords: "and begin case cond def define defmacro defn defun defvar do else fn if lambda let let* letrec loop nil \
               not ns or quote recur require set! setq true false unless when",
    also_in_words: "-*+!?/<>=:",
    after_keys: None,
    rules: NO_RULES,
};

/// Every language. The first with a name is taken.
pub(super) static ALL: &[Language] = &[
    Language {
        names: "rust rs",
        block_comment: Some(nested("/*", "*/")),
        quotes: &[long("\"")],
        keywords: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop \
                   match mod move mut pub ref return self Self static struct super trait true type union unsafe use \
                   where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize",
        rules: Rules { is_rust: true, ..CODE },
        ..C
    },
    Language {
        names: "javascript js jsx mjs cjs typescript ts tsx mts cts node",
        quotes: &[long("`"), short("\""), short("'")],
        keywords: "abstract any as async await bigint boolean break case catch class const continue debugger declare \
                   default delete do else enum export extends false finally for from function get if implements \
                   import in infer instanceof interface is keyof let namespace never new null number object of \
                   private protected public readonly return satisfies set static string super switch symbol this \
                   throw true try type typeof undefined unknown var void while with yield",
        also_in_words: "$",
        ..C
    },
    PYTHON,
    Language {
        names: "go golang",
        quotes: &[verbatim("`"), short("\""), short("'")],
        keywords: "any bool break byte case chan complex128 const continue default defer else error fallthrough false \
                   float32 float64 for func go goto if import int int8 int16 int32 int64 interface iota map nil \
                   package range return rune select string struct switch true type uint uint8 uint16 uint32 uint64 \
                   uintptr var",
        ..C
    },
    C,
    Language {
        names: "cpp c++ cc cxx hpp hh hxx cuda cu objc objective-c m mm arduino ino",
        keywords: "alignas alignof and auto bool break case catch char class co_await co_return co_yield concept const \
                   consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum \
                   explicit export extern false final float for friend goto if inline int long mutable namespace new \
                   noexcept not nullptr operator or override private protected public requires return short signed \
                   sizeof static static_cast struct switch template this throw true try typedef typename union \
                   unsigned using virtual void volatile while",
        ..C
    },
    Language {
        names: "csharp cs c# fsharp fs f#",
        keywords: "abstract as async await base bool break byte case catch char checked class const continue decimal \
                   default delegate do double else enum event explicit extern false finally fixed float for foreach \
                   get goto if implicit in init int interface internal is let lock long match member module mutable \
                   namespace new null object of open operator out override params partial private protected public \
                   readonly record ref return sealed set short static string struct switch then this throw true try \
                   type typeof uint ulong unsafe use using value var virtual void when where while with yield",
        ..C
    },
    Language {
        names: "java kotlin kt kts scala sc groovy gradle apex",
        block_comment: Some(nested("/*", "*/")),
        quotes: &[long("\"\"\""), short("\""), short("'")],
        keywords: "abstract as assert boolean break by byte case catch char class companion const continue data def \
                   default do double else enum extends false final finally float for fun given if implements import \
                   in init inline instanceof int interface internal is lateinit lazy long match native new null \
                   object open operator out override package permits private protected public record return sealed \
                   short static super suspend switch synchronized then this throw throws trait transient true try \
                   type typealias val var void volatile when where while with yield",
        ..C
    },
    Language {
        names: "swift",
        block_comment: Some(nested("/*", "*/")),
        quotes: &[long("\"\"\""), short("\"")],
        keywords: "actor any as associatedtype async await break case catch class continue default defer deinit do \
                   else enum extension fallthrough false fileprivate for func get guard if import in indirect init \
                   inout internal is lazy let mutating nil nonisolated open operator override private protocol \
                   public repeat return self Self set some static struct subscript super switch throw throws true \
                   try typealias var weak where while",
        ..C
    },
    Language {
        names: "php",
        line_comments: &["//", "#"],
        quotes: &[long("\""), long("'")],
        keywords: "abstract and array as bool break callable case catch class clone const continue declare default do \
                   echo else elseif enum extends false final finally float fn for foreach function global if \
                   implements include instanceof int interface match namespace new null or print private protected \
                   public readonly require require_once return self static string switch this throw trait true try \
                   unset use var void while yield",
        rules: Rules { has_dollars: true, ..CODE },
        ..C
    },
    Language {
        names: "dart zig solidity sol d v vlang glsl hlsl wgsl verilog sv thrift proto protobuf hx haxe",
        keywords: "abstract address and as assert async await bool break case catch class comptime const continue \
                   contract default defer do double dynamic else emit enum errdefer error event export extends \
                   extension extern external factory false final finally float fn for function get if implements \
                   import in inline int interface internal is late let library mapping memory message mixin mut new \
                   null optional or orelse package payable private pub public repeated required return returns rpc \
                   service set static storage string struct super switch syntax test this throw true try type \
                   uint256 undefined union unreachable usingnamespace var vec2 vec3 vec4 view virtual void while \
                   with yield",
        ..C
    },
    Language {
        names: "css scss sass less",
        quotes: &[short("\""), short("'")],
        keywords: "and auto block bold center flex from grid important inherit inline none not only or relative \
                   absolute fixed solid to var",
        also_in_words: "-",
        after_keys: Some(':'),
        line_comments: &["// "],
        ..C
    },
    Language {
        names: "ruby rb rake gemspec crystal cr",
        quotes: &[short("\""), short("'"), short("`")],
        keywords: "alias and begin break case class def defined do else elsif end ensure extend false for if in \
                   include lambda module new next nil not or private protected public raise redo require rescue \
                   retry return self super then true undef unless until when while yield",
        also_in_words: "?",
        rules: Rules { comments_begin_words: true, ..CODE },
        ..PYTHON
    },
    Language {
        names: "elixir ex exs",
        keywords: "after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else \
                   end false fn for if import in nil not or quote raise receive require rescue super true try unless \
                   use when with",
        rules: Rules { comments_begin_words: true, ..CODE },
        ..PYTHON
    },
    Language {
        names: "erlang erl hrl matlab octave",
        line_comments: &["%"],
        quotes: &[short("\"")],
        keywords: "after and andalso begin break case catch else elseif end false for fun function global if not of or \
                   orelse otherwise receive return switch true try when while",
        ..PYTHON
    },
    Language {
        names: "perl pl pm raku",
        quotes: &[long("\""), long("'")],
        keywords: "and bless cmp das die do else elsif eq foreach for given if keys last local my next no not or our \
                   package print push qw redo ref require return say shift sub undef unless until use while",
        rules: Rules { comments_begin_words: true, has_dollars: true, ..CODE },
        ..PYTHON
    },
    Language {
        names: "lua luau",
        line_comments: &["--"],
        block_comment: Some(block("--[[", "]]")),
        quotes: &[short("\""), short("'"), Quote { start: "[[", end: "]]", has_escapes: false, is_long: true }],
        keywords: "and break do else elseif end false for function goto if in local nil not or repeat return then \
                   true until while",
        ..C
    },
    Language {
        names: "r julia jl nim",
        quotes: &[long("\"\"\""), short("\""), short("'")],
        keywords: "and baremodule begin break case catch const do else elseif end export FALSE finally for func \
                   function global if import in let library local macro module mutable NA next not NULL otherwise or \
                   proc quote repeat return struct switch TRUE true false try using var while",
        also_in_words: ".",
        ..PYTHON
    },
    Language {
        names: "haskell hs purescript purs elm idris agda",
        line_comments: &["--"],
        block_comment: Some(nested("{-", "-}")),
        quotes: &[short("\"")],
        keywords: "as case class data default deriving do else forall foreign hiding if import in infix infixl infixr \
                   instance let mdo module newtype of port qualified rec then type where",
        also_in_words: "'",
        rules: Rules { has_types: true, ..NO_RULES },
        ..C
    },
    Language {
        names: "ocaml ml mli reason re sml",
        line_comments: &[],
        block_comment: Some(nested("(*", "*)")),
        quotes: &[long("\"")],
        keywords: "and as assert begin class do done downto else end exception external false for fun function functor \
                   if in include inherit initializer lazy let match method module mutable new object of open or \
                   private rec sig struct then to true try type val virtual when while with",
        also_in_words: "'",
        rules: Rules { has_types: true, ..NO_RULES },
        ..C
    },
    LISP,
    Language {
        names: "sql mysql postgres postgresql plsql psql sqlite tsql",
        line_comments: &["--"],
        quotes: &[verbatim("'"), verbatim("\"")],
        keywords: "add all alter and any as asc begin between bigint boolean by cascade case cast check column commit \
                   constraint create cross cursor database default delete desc distinct do drop else end except \
                   exists explain false fetch for foreign from full function grant group having if in index inner \
                   insert integer intersect interval into is join key language left like limit lock materialized \
                   not null numeric offset on or order outer over partition primary procedure references replace \
                   returning returns revoke right rollback row schema select sequence set table text then \
                   timestamp to transaction trigger true truncate union unique update using values varchar view \
                   when where window with",
        rules: Rules { ignores_case: true, has_calls: true, ..NO_RULES },
        ..C
    },
    SHELL,
    Language {
        names: "powershell ps1 pwsh psm1",
        block_comment: Some(block("<#", "#>")),
        keywords: "begin break catch class continue data do dynamicparam else elseif end exit filter finally for \
                   foreach function if in param process return switch throw trap try until using while",
        rules: Rules { ignores_case: true, ..SCRIPT },
        ..SHELL
    },
    Language {
        names: "batch bat cmd",
        line_comments: &["::", "rem ", "REM "],
        quotes: &[short("\"")],
        keywords: "call cd echo else endlocal errorlevel exist exit for goto if in not pause set setlocal shift",
        rules: Rules { ignores_case: true, ..NO_RULES },
        ..SHELL
    },
    Language {
        names: "make makefile mk gnumakefile justfile just cmake cmakelists.txt",
        keywords: "define else elseif endef endfunction endif endforeach export foreach function if ifdef ifeq ifndef \
                   ifneq include macro option override project set unexport vpath PHONY",
        ..SHELL
    },
    Language {
        names: "dockerfile docker containerfile nginx caddyfile apache",
        keywords: "ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL STOPSIGNAL USER \
                   VOLUME WORKDIR http listen location proxy_pass return root server server_name upstream",
        ..SHELL
    },
    Language { names: "vim vimscript viml", line_comments: &["\" "], quotes: &[short("'")], ..SHELL },
    Language {
        names: "tex latex bib",
        line_comments: &["%"],
        quotes: &[],
        keywords: "",
        also_in_words: "\\@",
        rules: NO_RULES,
        ..SHELL
    },
    Language { names: "json jsonc json5 jsonl ndjson ipynb", line_comments: &["//"], after_keys: Some(':'), ..DATA },
    Language { names: "yaml yml", line_comments: &["#"], after_keys: Some(':'), ..DATA },
    Language {
        names: "toml",
        line_comments: &["#"],
        quotes: &[long("\"\"\""), verbatim("'''"), short("\""), short("'")],
        ..DATA
    },
    DATA,
    Language { names: "env dotenv", line_comments: &["#"], also_in_words: "", ..DATA },
    Language {
        names: "hcl terraform tf tfvars nix graphql gql prisma bicep cue dhall",
        line_comments: &["#", "//"],
        block_comment: Some(block("/*", "*/")),
        quotes: &[long("''"), long("\"\"\""), short("\"")],
        keywords: "assert data else enum extend false for fragment if implements import in inherit input interface let \
                   locals model module mutation null on or output provider query rec resource scalar schema \
                   subscription terraform then true type union variable with",
        also_in_words: "-",
        ..DATA
    },
    Language {
        names: "asm nasm s assembly wat wasm llvm ll",
        line_comments: &[";", "#", "//"],
        quotes: &[short("\"")],
        keywords: "add and call cmp dec define div global globl i32 i64 inc jmp je jne lea local mov mul nop or pop \
                   push ret section sub syscall test xor func module param result export import",
        also_in_words: ".%",
        rules: NO_RULES,
        ..C
    },
];
