//! What the client is told about a session when it asks: figures and lists, nothing that changes anything.

use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use futures::future::BoxFuture;
use pelton::compact::ContextUsage;
use pelton::permission::{Behavior, Layer, Rule};
use pelton::tools::{Tool, ToolServer};
use pelton_model::{Effort, catalogue};
use pelton_wire::usage::Usage;
use serde_json::{Value, json};

use super::files::on_a_thread;
use super::limits::TASK_TAIL_BYTES;
use super::requests::Handles;
use crate::outcome::{self, Asks};

impl Handles {
    pub(super) fn settings(&self) -> Value {
        let rules = self.permissions.rules();
        let words = |rules: &[Rule]| rules.iter().map(ToString::to_string).collect::<Vec<_>>();
        let (mode, model) = (self.permissions.mode().name(), self.dials.model());
        let directories = self.permissions.roots().into_iter().skip(1);
        let directories: Vec<String> = directories.map(|dir| dir.to_string_lossy().into_owned()).collect();
        json!({
            "effective": {
                "model": model,
                "permissions": {
                    "allow": words(&rules.allow),
                    "ask": words(&rules.ask),
                    "deny": words(&rules.deny),
                    "defaultMode": mode,
                    "additionalDirectories": directories,
                },
            },
            "sources": self.home.as_ref().map(|home| home.sources()).unwrap_or_default(),
            "applied": {"model": model, "permissionMode": mode, "effort": self.dials.effort().map(Effort::as_str)},
        })
    }

    /// The rules that hold, and where each was written.
    pub(super) fn permission_rules(&self) -> Value {
        let all = self.permissions.rules();
        let kinds = [Behavior::Allow, Behavior::Ask, Behavior::Deny];
        let rows = kinds.into_iter().flat_map(|behavior| {
            let row = move |rule: &Rule| {
                let layer = rule.source().layer;
                let source = layer_name(layer);
                let editability = match layer {
                    Layer::User | Layer::Project | Layer::Local => "persistent",
                    Layer::Managed => "readonly",
                    _ => "session",
                };
                let mut row = json!({
                    "behavior": behavior.name(),
                    "source": source,
                    "rule": rule.to_string(),
                    "editability": editability,
                });
                if all.managed_only && source != "policySettings" && behavior == Behavior::Allow {
                    row["notInEffect"] = json!(true);
                }
                row
            };
            all.of(behavior).iter().map(row).collect::<Vec<Value>>()
        });
        let rules: Vec<Value> = rows.collect();
        let further = self.permissions.roots().into_iter().skip(1);
        let directories: Vec<Value> =
            further.map(|dir| json!({"path": dir.to_string_lossy(), "source": "session"})).collect();
        json!({"state": {
            "rules": rules,
            "workspaceDirectories": directories,
            "originalCwd": self.cwd.to_string_lossy(),
            "managedOnly": all.managed_only,
        }})
    }

    fn asks(&self) -> Asks {
        Asks::of(&self.dials.model(), &self.betas)
    }

    /// What the session has cost, and of whom. Limits of a subscription are told as they change.
    pub(super) fn usage(&self) -> Value {
        json!({
            "session": {
                "total_cost_usd": self.cost.usd(),
                "total_api_duration_ms": self.spent.api.as_millis(),
                "total_duration_ms": self.spent.all.as_millis(),
                "total_lines_added": self.spent.lines_added,
                "total_lines_removed": self.spent.lines_removed,
                "model_usage": outcome::model_usage(&self.cost.by_model(), &self.asks()),
            },
            "subscription_type": null,
            "rate_limits_available": false,
            "rate_limits": null,
            "behaviors": null,
        })
    }

    /// The end of what a command in the background has printed.
    pub(super) fn task_output(&self, id: &str) -> BoxFuture<'static, Result<Value, String>> {
        let task = self.tasks.find(id).ok_or_else(|| format!("No task found with ID: {id}"));
        on_a_thread(move || {
            let fail = |error: std::io::Error| format!("its output cannot be read: {error}");
            let mut file = fs::File::open(&task?.output).map_err(fail)?;
            let bytes = file.metadata().map_err(fail)?.len();
            file.seek(SeekFrom::Start(bytes.saturating_sub(TASK_TAIL_BYTES))).map_err(fail)?;
            let mut end = Vec::new();
            file.take(TASK_TAIL_BYTES).read_to_end(&mut end).map_err(fail)?;
            let output = String::from_utf8_lossy(&end);
            Ok(json!({"output": output, "total_bytes": bytes, "truncated": bytes > TASK_TAIL_BYTES}))
        })
    }

    /// What fills the context: the figures everybody goes by.
    pub(super) fn context_usage(&self) -> Value {
        let usage = self.context.usage();
        let window = usage.window_tokens;
        let category = |id: &str, name: &str, tokens: u64| {
            let kind = if id == "free_space" { "free" } else { "used" };
            json!({"id": id, "name": name, "tokens": tokens, "color": "inactive", "kind": kind})
        };
        let sum = |kind: &str| -> u64 {
            usage.shares.iter().filter(|share| share.kind == kind).map(|share| share.tokens).sum()
        };
        let mut categories = vec![category("system_prompt", "System prompt", sum("system"))];
        let tools = usage.shares.iter().filter(|share| share.kind == "tools");
        categories.extend(tools.enumerate().map(|(nth, share)| match nth {
            0 => category("system_tools", "System tools", share.tokens),
            _ => category("mcp_tools", &format!("MCP tools: {}", share.name), share.tokens),
        }));
        categories.extend([
            category("memory_files", "Memory files", sum("memory")),
            // They are parts of messages; there is no other word for them.
            category("messages", "Images and documents", sum("media")),
            category("messages", "Messages", sum("messages")),
            category("free_space", "Free space", window.saturating_sub(usage.used_tokens)),
        ]);
        let memory = usage.shares.iter().filter(|share| share.kind == "memory");
        let rows = grid_rows(&categories, window);
        let raw = catalogue::window(&usage.model, &self.betas).unwrap_or(window);
        json!({
            "categories": categories,
            "totalTokens": usage.used_tokens,
            "maxTokens": window,
            "rawMaxTokens": raw,
            "percentage": (usage.used_tokens as f64 / window.max(1) as f64 * 100.0).round(),
            "model": usage.model,
            "memoryFiles": memory.map(|share| json!({"path": share.name, "type": "Memory", "tokens": share.tokens})).collect::<Vec<_>>(),
            "mcpTools": self.mcp_tools(&usage),
            "agents": self.agents.iter().map(|name| json!({"agentType": name, "source": "session", "tokens": 0})).collect::<Vec<_>>(),
            "gridRows": rows,
            "isAutoCompactEnabled": usage.is_auto_compact_enabled,
            "autoCompactThreshold": usage.is_auto_compact_enabled.then_some(usage.auto_compact_threshold),
            "apiUsage": self.last.as_ref().map(|outcome| tokens(&outcome.usage)),
            "usableTokens": usage.usable_tokens,
            "rounds": usage.rounds,
            "levels": usage.levels,
            "nextTurnCachedUsd": usage.next_turn_cached_usd,
            "nextTurnUncachedUsd": usage.next_turn_uncached_usd,
            "cache": usage.cache,
        })
    }

    /// The tools of the client's servers. Those that are sent share what their server takes; of the others the model knows
    /// the names only.
    fn mcp_tools(&self, usage: &ContextUsage) -> Vec<Value> {
        let mut told = Vec::new();
        for server in self.servers.all() {
            let tools = server.tools();
            let bytes = |tool: &Arc<dyn Tool>| {
                let spec = tool.spec();
                (spec.name.len() + spec.description.len() + spec.input_schema.len()) as u64
            };
            let all = tools.iter().map(bytes).sum::<u64>().max(1);
            let share =
                usage.shares.iter().find(|share| share.kind == "tools" && share.name == server.name());
            told.extend(tools.iter().map(|tool| {
                let tokens = share.map_or(0, |share| share.tokens * bytes(tool) / all);
                json!({"name": tool.spec().name, "serverName": server.name(), "tokens": tokens, "isLoaded": share.is_some()})
            }));
        }
        told
    }
}

/// The window as squares, a hundredth of it each: whatever takes anything has one at least, and the last of each may be filled
/// in part.
fn grid_rows(categories: &[Value], window: u64) -> Vec<Vec<Value>> {
    const ROW: usize = 10;
    let square_tokens = window.max(1) as f64 / (ROW * ROW) as f64;
    let mut squares = Vec::new();
    let (free, taken): (Vec<&Value>, Vec<&Value>) =
        categories.iter().partition(|category| category["kind"] == "free");
    for category in taken {
        let tokens = category["tokens"].as_u64().unwrap_or_default();
        let wanted = tokens as f64 / square_tokens;
        for nth in 0..wanted.ceil() as usize {
            squares.push(square(category, tokens, window, (wanted - nth as f64).min(1.0)));
        }
    }
    squares.truncate(ROW * ROW);
    for category in free {
        let tokens = category["tokens"].as_u64().unwrap_or_default();
        squares.resize_with(ROW * ROW, || square(category, tokens, window, 1.0));
    }
    squares.chunks(ROW).map(<[Value]>::to_vec).collect()
}

fn square(category: &Value, tokens: u64, window: u64, fullness: f64) -> Value {
    json!({
        "color": category["color"],
        "isFilled": category["kind"] != "free",
        "categoryName": category["name"],
        "tokens": tokens,
        "percentage": (tokens as f64 / window.max(1) as f64 * 100.0).round(),
        "squareFullness": fullness,
    })
}

/// The tokens of the last turn, and nothing else of its figures.
fn tokens(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
    })
}

/// Whose word a rule is, in the words of the protocol.
pub(super) fn layer_name(layer: Layer) -> &'static str {
    match layer {
        Layer::User => "userSettings",
        Layer::Project => "projectSettings",
        Layer::Local => "localSettings",
        Layer::Managed => "policySettings",
        Layer::CommandLine => "cliArg",
        _ => "session",
    }
}
