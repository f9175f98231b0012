//! `codex execpolicy check`: evaluates the rules for a command.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use codex_config::{Env, Home};
use codex_tools::rules::{self, Rules, Verdict};

use crate::args::CheckArgs;
use crate::console;

/// The maximum size of a rules file.
const MOST_BYTES: u64 = 8 * 1024 * 1024;

/// Prints the decision and the rule behind it: for people in a terminal, otherwise as JSON.
pub(crate) fn check(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let verdict = rules(args)?.check(&args.command);
    if args.pretty {
        writeln!(console::json(), "{:#}", verdict.to_json())?;
    } else if args.json || !console::out_is_terminal() {
        writeln!(console::json(), "{}", verdict.to_json())?;
    } else {
        describe(&args.command, &verdict, &mut console::out())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rules(args: &CheckArgs) -> anyhow::Result<Rules> {
    if args.rules.is_empty() {
        return Ok(rules::in_force(&Home::find(&Env::process())?)?);
    }
    args.rules.iter().try_fold(Rules::empty(), |rules, path| {
        let text =
            codex_files::read_text(path, MOST_BYTES).with_context(|| format!("could not read {}", path.display()))?;
        Ok(rules.and(Rules::parse(path, &text)?))
    })
}

fn describe(argv: &[String], verdict: &Verdict, output: &mut impl Write) -> std::io::Result<()> {
    let command = codex_wire::command_line::display(argv);
    let Some(decision) = verdict.decision else {
        return writeln!(output, "no rule matches {command}; the approval policy decides");
    };
    writeln!(output, "{}: {command}", decision.word())?;
    for matched in &verdict.matched {
        writeln!(output, "  {}:{}: {}", matched.file.display(), matched.line, matched.rule)?;
        if let Some(why) = &matched.justification {
            writeln!(output, "    because {why}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use codex_files::testing::{Endless, soon};

    use super::*;

    #[test]
    fn rules_that_never_end_are_an_error() {
        for kind in Endless::ALL {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.rules");
            kind.make(&path).unwrap();
            let args = CheckArgs { rules: vec![path], json: true, pretty: false, command: vec!["ls".to_owned()] };
            let error = soon(move || rules(&args)).unwrap().unwrap_err();
            assert!(error.to_string().ends_with("x.rules"), "{error}");
            assert_eq!(error.root_cause().to_string(), kind.complaint(Some(MOST_BYTES)));
        }
    }
}
