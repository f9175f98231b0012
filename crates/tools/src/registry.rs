//! The available tools, from all sources.
//!
//! Invariant: a snapshot never changes. The tool list sent to a model and the dispatch of its calls use the same one.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use codex_wire::provider_traits::{PatchForm, ShellForm};
use codex_wire::tool_spec::{ToolList, ToolSpec, WebAccess};

use crate::call::{Concurrency, ToolCall};
use crate::command::{CommandTool, UserShellTool, WriteStdinTool};
use crate::context::ToolContext;
use crate::grants::Grants;
use crate::lifecycle::Call;
use crate::patching::ApplyPatchTool;
use crate::permissions::RequestPermissionsTool;
use crate::plain::{UnknownTool, UpdateGoalTool, UpdatePlanTool, ViewImageTool, WebSearchTool};

/// A tool that a model or the user can call.
pub trait Tool: Send + Sync {
    /// Its specification for a model, if it is offered.
    fn spec(&self, offer: Offer) -> Option<ToolSpec>;
    /// Whether a call is for it, offered or not: models call tools that they were trained with.
    fn takes(&self, call: &ToolCall) -> bool;
    /// The calls that may run concurrently with a call.
    fn concurrency(&self, call: &ToolCall) -> Concurrency;
    /// Whether a call runs a command.
    fn is_command(&self, _: &ToolCall) -> bool {
        false
    }
    /// Begins a call. It never waits and never fails: errors are reported to the model.
    fn begin(&self, call: ToolCall, cx: &Arc<ToolContext>, grants: &Grants) -> Box<dyn Call>;
}

/// The tools that a model is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Offer {
    /// The tool for running commands.
    pub shell: ShellForm,
    /// The form of patches.
    pub patch: PatchForm,
    /// Whether the provider searches the web.
    pub web_search: Option<WebAccess>,
    /// Whether there is a goal.
    pub has_goal: bool,
    /// Whether the tools of an MCP server are one namespace.
    pub has_namespaces: bool,
    /// Whether the model may ask for permissions.
    pub asks_permissions: bool,
}

/// A source of tools.
pub trait ToolSource: Send + Sync {
    /// A version that increases whenever the tools change.
    fn version(&self) -> u64;
    /// The tools, in the order in which a model sees them.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// The built-in tools.
#[derive(Debug, Default)]
pub struct BuiltIn;

impl ToolSource for BuiltIn {
    fn version(&self) -> u64 {
        0
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        vec![
            Arc::new(CommandTool::InTerminal),
            Arc::new(WriteStdinTool),
            Arc::new(CommandTool::Shell),
            Arc::new(ApplyPatchTool),
            Arc::new(WebSearchTool),
            Arc::new(ViewImageTool),
            Arc::new(UpdatePlanTool),
            Arc::new(UpdateGoalTool),
            Arc::new(RequestPermissionsTool),
            Arc::new(UserShellTool),
        ]
    }
}

/// The tools of all sources at one time, those of earlier sources first.
pub struct Snapshot {
    version: u64,
    tools: Vec<Arc<dyn Tool>>,
    lists: Mutex<BTreeMap<Offer, Arc<ToolList>>>,
}

impl Snapshot {
    /// The tool that handles a call.
    #[must_use]
    pub fn find(&self, call: &ToolCall) -> &dyn Tool {
        let found = self.tools.iter().find(|tool| tool.takes(call));
        found.map_or(&UnknownTool, |tool| &**tool)
    }

    /// The specifications for a model. All threads with equal lists share them, and their encoding.
    #[must_use]
    pub fn list(&self, offer: Offer) -> Arc<ToolList> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        let make = || ToolList::of(self.tools.iter().filter_map(|tool| tool.spec(offer)).collect());
        Arc::clone(lists.entry(offer).or_insert_with(make))
    }
}

/// The sources of tools, in order.
pub struct Registry {
    sources: Vec<Arc<dyn ToolSource>>,
    current: Mutex<Arc<Snapshot>>,
}

impl Registry {
    #[must_use]
    pub fn new(sources: Vec<Arc<dyn ToolSource>>) -> Self {
        let current = Mutex::new(Arc::new(taken(&sources)));
        Self { sources, current }
    }

    /// The current tools.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.version != version(&self.sources) {
            *current = Arc::new(taken(&self.sources));
        }
        Arc::clone(&current)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new(vec![Arc::new(BuiltIn)])
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Registry").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

fn version(sources: &[Arc<dyn ToolSource>]) -> u64 {
    sources.iter().map(|source| source.version()).sum()
}

fn taken(sources: &[Arc<dyn ToolSource>]) -> Snapshot {
    // A source that changes in the meantime has a higher version the next time.
    let version = version(sources);
    let tools = sources.iter().flat_map(|source| source.tools()).collect();
    Snapshot { version, tools, lists: Mutex::default() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use codex_log::ItemId;

    use super::*;
    use crate::call::ToolInput;

    fn offer(shell: ShellForm, searches_web: bool, has_goal: bool) -> Offer {
        let web_search = searches_web.then_some(WebAccess::Usual);
        Offer {
            shell,
            patch: PatchForm::Function,
            web_search,
            has_goal,
            has_namespaces: false,
            asks_permissions: false,
        }
    }

    #[test]
    fn the_tools_of_a_model_are_listed_in_order() {
        let names = |offer| {
            let list = Registry::default().snapshot().list(offer);
            list.specs().iter().map(|spec| spec.name().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(offer(ShellForm::Shell, false, false)), "shell apply_patch view_image update_plan");
        assert_eq!(
            names(offer(ShellForm::ExecCommand, true, true)),
            "exec_command write_stdin apply_patch web_search view_image update_plan update_goal"
        );
        assert_eq!(
            names(offer(ShellForm::ShellCommand, false, false)),
            "shell_command apply_patch view_image update_plan"
        );
    }

    #[test]
    fn patches_come_in_the_form_that_a_model_knows() {
        let form = |patch| {
            let offer = Offer { patch, ..offer(ShellForm::Shell, false, false) };
            let list = Registry::default().snapshot().list(offer);
            let patch = list.specs().iter().find(|spec| spec.name() == "apply_patch").cloned();
            patch.unwrap()
        };
        assert!(matches!(form(PatchForm::Function), ToolSpec::Function(_)));
        let ToolSpec::Custom(custom) = form(PatchForm::Freeform) else { panic!("it takes free text") };
        assert_eq!(custom.grammar.as_ref().map(|grammar| &*grammar.syntax), Some("lark"));
    }

    #[test]
    fn threads_with_equal_lists_share_them() {
        let one = Registry::default().snapshot().list(offer(ShellForm::Shell, true, false));
        let other = Registry::default().snapshot().list(offer(ShellForm::Shell, true, false));
        assert!(Arc::ptr_eq(&one, &other));
    }

    /// A source whose tools change.
    #[derive(Default)]
    struct Changing(AtomicU64);

    impl ToolSource for Changing {
        fn version(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn tools(&self) -> Vec<Arc<dyn Tool>> {
            if self.version() == 0 { Vec::new() } else { vec![Arc::new(UpdatePlanTool)] }
        }
    }

    #[test]
    fn a_source_that_changes_gives_another_snapshot() {
        let source = Arc::new(Changing::default());
        let registry = Registry::new(vec![Arc::clone(&source) as Arc<dyn ToolSource>]);
        let before = registry.snapshot();
        assert!(Arc::ptr_eq(&before, &registry.snapshot()), "nothing has changed");
        source.0.store(1, Ordering::Relaxed);
        let after = registry.snapshot();
        let offer = offer(ShellForm::Shell, false, false);
        assert_eq!((before.list(offer).specs().len(), after.list(offer).specs().len()), (0, 1));
        let input = ToolInput::Function(String::new());
        let call = ToolCall { id: ItemId::new("c"), tool: "update_plan".to_owned(), input };
        assert_eq!(before.find(&call).concurrency(&call), Concurrency::Beside, "nobody knows it");
        assert_eq!(after.find(&call).concurrency(&call), Concurrency::Alone);
    }
}
