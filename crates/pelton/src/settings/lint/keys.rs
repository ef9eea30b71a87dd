//! Keys that nobody knows, and those that others know.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::read::known_places;
use super::nearest::suggestion;
use super::{Finding, FindingKind, Page, Weight};

/// Keys of programs that share these files. They are no mistake, and do nothing here.
const ELSEWHERE: &str = "$schema autoConnectIde autoUpdates autoUpdatesChannel \
    awsAuthRefresh awsCredentialExport axScreenReader channelsEnabled companyAnnouncements \
    crossSessionInbound disableAutoMode disableClaudeAiConnectors \
    editorMode feedbackSurveyRate forceLoginMethod forceLoginOrgUUID gcpAuthRefresh idleCompaction \
    isolatePeerMachines otelHeadersHelper \
    policyHelper preferredNotifChannel prefersReducedMotion proxyAuthHelper remoteControlAtStartup \
    requiredMinimumVersion showTurnDuration spinnerTipsEnabled \
    attribution.sessionUrl spinnerTipsOverride spinnerVerbs sshConfigs \
    subagentStatusLine syncClaudeAiSkills terminalProgressBarEnabled tui \
    useAutoModeDuringPlan verbose viewMode voice voiceEnabled worktree.bgIsolation permissions.disableAutoMode";
/// Objects whose keys whoever writes the file chooses.
const FREE: [&str; 8] = [
    "env",
    "modelOverrides",
    "managedMcpServers",
    "enabledPlugins",
    "extraKnownMarketplaces",
    "sandbox.ignoreViolations",
    "skillOverrides",
    "pluginConfigs",
];

pub(super) fn lint(page: &Page<'_>, findings: &mut Vec<Finding>) {
    if let Some(all) = page.value.as_object() {
        let known = known_places();
        walk(page, &known, all, "", "", findings);
    }
}

/// `place` is where an object stands, `pattern` the same with stars for chosen names.
fn walk(
    page: &Page<'_>,
    known: &BTreeSet<String>,
    object: &Map<String, Value>,
    place: &str,
    pattern: &str,
    findings: &mut Vec<Finding>,
) {
    for (key, value) in object {
        let (here, any) = (format!("{place}{key}"), format!("{pattern}{key}"));
        if known.contains(&any) {
            let inside = format!("{any}.");
            let has_keys = known.range(inside.clone()..).next().is_some_and(|next| next.starts_with(&inside));
            match value.as_object() {
                // The hooks have a reader of their own that names what it does not know.
                Some(inner) if has_keys && !FREE.contains(&any.as_str()) => {
                    let is_named = known.range(format!("{inside}*.")..).next();
                    match is_named.filter(|next| next.starts_with(&format!("{inside}*."))) {
                        Some(_) => {
                            for (name, entry) in inner {
                                let entry = entry.as_object().into_iter();
                                entry.for_each(|entry| {
                                    walk(
                                        page,
                                        known,
                                        entry,
                                        &format!("{here}.{name}."),
                                        &format!("{inside}*."),
                                        findings,
                                    );
                                });
                            }
                        }
                        None => walk(page, known, inner, &format!("{here}."), &inside, findings),
                    }
                }
                _ => {}
            }
        } else if ELSEWHERE.split_whitespace().any(|elsewhere| elsewhere == any) {
            let text = "is a key of other programs: it does nothing here";
            findings.push(page.finding(FindingKind::KeyWithoutEffect, Weight::Note, &here, text));
        } else {
            let beside = known
                .iter()
                .filter_map(|place| place.strip_prefix(pattern))
                .filter(|rest| !rest.contains('.'));
            // It may be meant to stand somewhere else.
            let elsewhere = known.iter().find(|place| place.rsplit('.').next() == Some(key.as_str()));
            let hint = match elsewhere {
                Some(place) => format!(" (did you mean `{place}`?)"),
                None => suggestion(key, beside),
            };
            let text = format!("is no key that is known{hint}");
            findings.push(page.finding(FindingKind::UnknownKey, Weight::Warning, &here, text));
        }
    }
}
