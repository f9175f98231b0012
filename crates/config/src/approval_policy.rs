//! `approval_policy`: a word, or a table `granular` with a switch for each kind of question.

use codex_wire::policy::{AskForApproval, GranularApproval};

use crate::tree::Value;
use crate::{Reader, ValueError};

impl Reader<'_> {
    /// The approval policy under `approval_policy`.
    pub fn approval_policy(&self) -> Result<Option<AskForApproval>, ValueError> {
        const KEY: &str = "approval_policy";
        let Some(node) = self.node(KEY) else { return Ok(None) };
        if !matches!(node.value, Value::Table(_)) {
            return self.word(KEY);
        }
        let section = self.section(KEY)?;
        let Some(granular) = section.node("granular") else {
            return Err(self.error(KEY, node, "missing field `granular`".to_owned()));
        };
        let switches = section.section("granular")?;
        let needed = |key: &str| {
            let missing = || section.error("granular", granular, format!("missing field `{key}`"));
            switches.bool(key)?.ok_or_else(missing)
        };
        let optional = |key: &str| Ok(switches.bool(key)?.unwrap_or(false));
        Ok(Some(AskForApproval::Granular(GranularApproval {
            sandbox_approval: needed("sandbox_approval")?,
            rules: needed("rules")?,
            skill_approval: optional("skill_approval")?,
            request_permissions: optional("request_permissions")?,
            mcp_elicitations: needed("mcp_elicitations")?,
        })))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect;

    use crate::{Reader, Tree};

    fn read(text: &str) -> String {
        let tree = Tree::parse(Path::new("/home/config.toml"), text).expect("it parses");
        match Reader::new(&tree, None).approval_policy() {
            Ok(policy) => serde_json::to_string(&policy).expect("it is JSON"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_policy_is_a_word_or_a_table_of_switches() {
        expect![[r#""untrusted""#]].assert_eq(&read("approval_policy = 'untrusted'"));
        expect![[r#"{"granular":{"sandbox_approval":true,"rules":false,"skill_approval":false,"request_permissions":true,"mcp_elicitations":false}}"#]]
            .assert_eq(&read(
                "[approval_policy.granular]\nsandbox_approval = true\nrules = false\nmcp_elicitations = false\n\
                 request_permissions = true",
            ));
        assert_eq!(read(""), "null");
    }

    #[test]
    fn a_switch_that_is_missing_or_no_boolean_is_named_with_its_place() {
        expect!["/home/config.toml:2: approval_policy.granular: missing field `mcp_elicitations`"]
            .assert_eq(&read("\napproval_policy = { granular = { sandbox_approval = true, rules = true } }"));
        expect![[r#"/home/config.toml:1: approval_policy.granular.rules: expected a boolean, found the string "yes""#]]
            .assert_eq(&read("approval_policy = { granular = { sandbox_approval = true, rules = 'yes' } }"));
        expect!["/home/config.toml:1: approval_policy: missing field `granular`"]
            .assert_eq(&read("approval_policy = { fine = true }"));
    }
}
