"""Everything the official agent SDK offers, and the scenario that shows it. What a new version adds fails here until it has one."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import typing
from pathlib import Path

import claude_agent_sdk as sdk
import pytest
from claude_agent_sdk import types

OPTIONS = {
    "add_dirs": "test_further_directories",
    "agents": "test_agents_are_offered_and_run",
    "allowed_tools": "test_allowed_tools_run_unasked",
    "betas": "test_betas_go_into_a_header",
    "can_use_tool": "test_a_permission_is_asked_for_and_given",
    "cli_path": "test_a_program_that_is_not_there",
    "client_app": "test_servers_are_told_who_asks",
    "continue_conversation": "test_continue_takes_the_newest",
    "cwd": "test_where_it_works",
    "disallowed_tools": "test_disallowed_tools_vanish",
    "effort": "test_effort",
    "enable_file_checkpointing": "test_files_go_back_to_what_they_were",
    "env": "test_variables_reach_commands",
    "extra_args": "test_extra_arguments",
    "fallback_model": "test_a_fallback_takes_over",
    "fork_session": "test_a_fork_has_an_id_of_its_own_and_leaves_the_other_alone",
    "forward_subagent_text": "test_words_of_agents_are_forwarded_when_wanted",
    "hooks": "test_hooks_run_side_by_side",
    "include_hook_events": "test_hook_events_of_programs",
    "include_partial_messages": "test_partial_messages",
    "load_timeout_ms": "test_a_store_that_takes_too_long_is_not_waited_for",
    "max_budget_usd": "test_max_budget_ends_a_run",
    "max_buffer_size": "test_a_small_buffer_of_the_reader",
    "max_thinking_tokens": "test_thinking_with_a_budget",
    "max_turns": "test_max_turns_end_a_run",
    "mcp_servers": "test_servers_from_a_file",
    "model": "test_the_model_is_chosen",
    "output_format": "test_structured_output",
    "permission_mode": "test_permission_mode_accept_edits",
    "permission_prompt_tool_name": "test_an_mcp_tool_that_decides",
    "plugins": "test_a_plugin_brings_its_skills_agents_and_servers",
    "resume": "test_resume_goes_on_with_the_same_session",
    "resume_drops_turn": "test_resume_without_a_turn",
    "resume_session_at": "test_resume_from_the_middle",
    "sandbox": "test_a_box_around_commands",
    "session_id": "test_a_session_id_of_ones_own",
    "session_store": "test_a_store_gets_every_line_and_gives_them_back",
    "session_store_flush": "test_a_store_that_is_told_at_once",
    "setting_sources": "test_setting_sources_decide_which_files_count",
    "settings": "test_settings_as_json",
    "skills": "test_skills_that_are_named",
    "stderr": "test_stderr_reaches_the_caller",
    "strict_mcp_config": "test_only_the_servers_that_are_named",
    "system_prompt": "test_system_prompt_as_text",
    "task_budget": "test_a_task_budget_is_told_to_the_model",
    "thinking": "test_thinking_as_the_model_likes",
    "tools": "test_tools_are_chosen",
    "user": "test_a_process_of_a_user_who_is_named",
    "verbatim_prompts": "test_verbatim_prompts_mean_what_they_say",
}

# The SDK takes these and does nothing with them.
UNUSED = {"debug_stderr"}

CLIENT = {
    "connect": "test_a_connection_is_made_and_ended_by_hand",
    "disconnect": "test_a_connection_is_made_and_ended_by_hand",
    "get_context_usage": "test_how_full_the_context_is",
    "get_mcp_status": "test_the_client_sees_reconnects_and_switches_off",
    "get_server_info": "test_what_the_client_is_told_at_the_start",
    "interrupt": "test_an_interrupt_while_the_model_speaks",
    "query": "test_turns_share_a_session",
    "receive_messages": "test_prompts_sent_together_are_all_answered",
    "receive_response": "test_turns_share_a_session",
    "reconnect_mcp_server": "test_servers_are_listed_put_aside_and_met_again",
    "rewind_files": "test_a_rewind_takes_back_what_commands_did_too",
    "set_model": "test_the_model_changes_between_turns",
    "set_permission_mode": "test_the_mode_changes_between_turns",
    "stop_task": "test_a_task_in_the_background_is_stopped",
    "toggle_mcp_server": "test_servers_are_listed_put_aside_and_met_again",
}

FUNCTIONS = {
    "create_sdk_mcp_server": "test_two_servers_with_tools_of_one_name",
    "delete_session": "test_a_session_is_deleted",
    "delete_session_via_store": "test_a_record_is_brought_into_a_store_and_changed_there",
    "fold_session_summary": "test_lines_are_summed_up_by_the_sdk_as_they_come",
    "fork_session": "test_a_session_that_the_sdk_forked_goes_on",
    "fork_session_via_store": "test_a_record_is_brought_into_a_store_and_changed_there",
    "get_session_info": "test_a_session_is_named_and_tagged_anew",
    "get_session_info_from_store": "test_a_record_is_brought_into_a_store_and_changed_there",
    "get_session_messages": "test_messages_of_a_session_are_read",
    "get_session_messages_from_store": "test_a_store_gets_every_line_and_gives_them_back",
    "get_subagent_messages": "test_sub_agents_of_a_session_are_read",
    "get_subagent_messages_from_store": "test_sub_agents_in_a_store_are_read",
    "import_session_to_store": "test_a_record_is_brought_into_a_store_and_changed_there",
    "list_sessions": "test_sessions_are_listed",
    "list_sessions_from_store": "test_a_store_gets_every_line_and_gives_them_back",
    "list_subagents": "test_sub_agents_of_a_session_are_read",
    "list_subagents_from_store": "test_sub_agents_in_a_store_are_read",
    "project_key_for_directory": "test_records_are_where_the_sdk_looks_for_them",
    "query": "test_an_api_error_is_a_result",
    "rename_session": "test_a_session_is_renamed_and_tagged",
    "rename_session_via_store": "test_a_record_is_brought_into_a_store_and_changed_there",
    "tag_session": "test_a_session_is_renamed_and_tagged",
    "tag_session_via_store": "test_a_record_is_brought_into_a_store_and_changed_there",
    "tool": "test_a_tool_of_the_program",
}

HOOKS = {
    "Notification": "test_a_hook_hears_what_wants_attention",
    "PermissionRequest": "test_a_permission_request_hook_decides",
    "PostToolUse": "test_a_hook_after_a_tool_adds_words",
    "PostToolUseFailure": "test_a_hook_after_a_failure",
    "PreCompact": "test_a_hook_before_a_conversation_is_summed_up",
    "PreToolUse": "test_a_hook_before_a_tool_refuses_it",
    "Stop": "test_a_stop_hook_lets_it_go_on",
    "SubagentStart": "test_hooks_hear_of_agents",
    "SubagentStop": "test_hooks_hear_of_agents",
    "UserPromptSubmit": "test_a_hook_on_a_prompt_adds_words",
}

MATCHERS = {
    "hooks": "test_hooks_run_side_by_side",
    "matcher": "test_matchers_choose_tools",
    "on_failure": "test_a_hook_whose_failure_blocks",
    "timeout": "test_a_hook_that_takes_too_long_is_no_permission",
}

AGENTS = {
    "background": "test_an_agent_beside_the_conversation_that_remembers",
    "description": "test_agents_are_offered_and_run",
    "disallowedTools": "test_an_agent_with_servers_skills_and_a_mode_of_its_own",
    "effort": "test_an_agent_with_a_model_and_an_end",
    "initialPrompt": "test_a_session_whose_agent_speaks_first",
    "maxTurns": "test_an_agent_with_a_model_and_an_end",
    "mcpServers": "test_an_agent_with_servers_skills_and_a_mode_of_its_own",
    "memory": "test_an_agent_beside_the_conversation_that_remembers",
    "model": "test_an_agent_with_a_model_and_an_end",
    "permissionMode": "test_an_agent_with_servers_skills_and_a_mode_of_its_own",
    "prompt": "test_agents_are_offered_and_run",
    "skills": "test_an_agent_with_servers_skills_and_a_mode_of_its_own",
    "tools": "test_agents_are_offered_and_run",
}


def scenarios() -> dict[str, str]:
    """The tests here by their names, as they are written."""
    files = Path(__file__).parent.glob("test_*.py")
    found = [node for file in files for node in ast.parse(file.read_text()).body if isinstance(node, ast.FunctionDef)]
    return {node.name: ast.unparse(node) for node in found if node.name.startswith("test_")}


def fields(of: type) -> set[str]:
    return {field.name for field in dataclasses.fields(of)}


OFFERED = {
    "options": (fields(sdk.ClaudeAgentOptions) - UNUSED, OPTIONS),
    "client": ({name for name, _ in inspect.getmembers(sdk.ClaudeSDKClient) if not name.startswith("_")}, CLIENT),
    "functions": ({name for name in sdk.__all__ if inspect.isfunction(getattr(sdk, name))}, FUNCTIONS),
    "hooks": ({typing.get_args(event)[0] for event in typing.get_args(types.HookEvent)}, HOOKS),
    "matchers": (fields(sdk.HookMatcher), MATCHERS),
    "agents": (fields(sdk.AgentDefinition), AGENTS),
}


@pytest.mark.parametrize("kind", OFFERED)
def test_everything_offered_has_a_scenario(kind: str) -> None:
    offered, shown = OFFERED[kind]
    assert offered == set(shown), "without a scenario, or no longer offered"
    written = scenarios()
    # The stage sets a few for everybody, and some programs have helpers: those are shown by what comes of them.
    by_the_stage = {"stderr", "query", "receive_response", "tool", "hooks"}
    for name, scenario in shown.items():
        assert scenario in written, f"{name}: there is no {scenario}"
        assert name in by_the_stage or name in written[scenario], f"{scenario} does not use {name}"


def test_no_scenario_is_for_two_options() -> None:
    assert len(set(OPTIONS.values())) == len(OPTIONS)
    all_shown = {scenario for _, shown in OFFERED.values() for scenario in shown.values()}
    assert len(all_shown) >= 60


def test_what_is_unused_is_unused() -> None:
    package = Path(sdk.__file__).parent / "_internal"
    text = "".join(file.read_text() for file in package.rglob("*.py"))
    assert not [name for name in UNUSED if f"options.{name}" in text]
