//! Tools that several servers offer, the very same: an answer to a search shows them as one.

use std::collections::HashMap;
use std::sync::Arc;

use super::Tool;
use crate::id::ToolId;

/// For each tool that another server offers as well, all that are the same, itself among them, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Copies(HashMap<ToolId, Arc<[ToolId]>>);

impl Copies {
    /// Of all tools, in the order of their ids.
    pub(super) fn of(tools: &[Arc<Tool>]) -> Self {
        // Schemas are compared only where all else is the same.
        let mut alike: HashMap<(&str, &str), Vec<Vec<&Tool>>> = HashMap::new();
        for tool in tools {
            let groups = alike.entry((tool.id().tool(), tool.description())).or_default();
            match groups.iter_mut().find(|group| is_same(group[0], tool)) {
                Some(group) => group.push(tool),
                None => groups.push(vec![tool]),
            }
        }
        let mut copies = HashMap::new();
        for group in alike.into_values().flatten().filter(|group| group.len() > 1) {
            let ids: Arc<[ToolId]> = group.iter().map(|tool| tool.id().clone()).collect();
            copies.extend(ids.iter().map(|id| (id.clone(), Arc::clone(&ids))));
        }
        Self(copies)
    }

    /// All that are the same as this one, itself among them; nothing where it is the only one.
    pub(crate) fn of_tool(&self, id: &ToolId) -> &[ToolId] {
        self.0.get(id).map_or(&[], |ids| ids)
    }
}

/// Whether two tools of one name and description are the same for who calls them.
fn is_same(one: &Tool, other: &Tool) -> bool {
    one.tier() == other.tier() && one.input_schema() == other.input_schema()
}
