//! Z2: which of the likely calls may be made ahead, and what becomes of them.

use std::path::Path;

use serde_json::Value;

use super::Bench;
use crate::hooks::HookEvent;
use crate::permission::{Found, HookSays, Judged};
use crate::tools::ahead::{Run, Wanted};
use crate::tools::predict::Predicted;
use crate::tools::tool::{Access, Output, Progress, Safety, Tool, ToolCx};

impl Bench {
    /// Makes those of the likely calls that would run anyway without anybody being asked or told.
    pub(crate) fn make_ahead(&self, likely: &[Predicted]) -> Vec<Run> {
        let Some(ahead) = &self.ahead else { return Vec::new() };
        let somebody_listens = [HookEvent::PreToolUse, HookEvent::PostToolUse, HookEvent::PostToolUseFailure]
            .into_iter()
            .any(|event| self.hooks.hooks.listens(event));
        if somebody_listens {
            return Vec::new();
        }
        let room = ahead.room();
        let wanted = likely.iter().filter_map(|call| self.wanted(call));
        wanted.filter_map(|wanted| ahead.make(wanted)).take(room).collect()
    }

    /// The result of a call that was made ahead, if it was and still holds.
    pub(super) async fn made_ahead(&self, tool: &dyn Tool, input: &Value, cx: &ToolCx) -> Option<Output> {
        let ahead = self.ahead.as_ref()?;
        let key = tool.foreseeable(input, cx)?;
        let taken = ahead.take(tool.spec().name, &key, &cx.files);
        // Interrupted, it is not waited for; the tool says the rest.
        cx.cancel.run_until_cancelled(taken).await.flatten()
    }

    fn wanted(&self, call: &Predicted) -> Option<Wanted> {
        let tool = self.tool(call.tool)?;
        let mut cx = self.cx_of("ahead");
        cx.progress = Progress::ignored();
        let key = tool.foreseeable(&call.input, &cx)?;
        let access = tool.access(&call.input, &cx).ok()?;
        let Access::Read(path) = &access else { return None };
        let path = path.clone();
        let found = Found::of(&access);
        let hook = HookSays::Nothing;
        let judged = Judged { tool: call.tool, input: &call.input, access: &access, cwd: &cx.cwd, hook };
        let allowed = tool.safety(&call.input) == Safety::Shared
            && self.permissions.gate().judge_at(&judged, &found).is_allowed();
        cx.judged = found.real().map(Path::to_path_buf);
        // What was read before is rarely read again.
        let is_news = !cx.files.remembers(&path);
        (allowed && is_news).then(|| Wanted { tool: tool.clone(), input: call.input.clone(), key, path, cx })
    }
}
