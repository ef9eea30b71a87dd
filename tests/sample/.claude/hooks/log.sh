#!/bin/sh
# Writes down which event came, about which tool, and for whom.
input=$(cat)
field() { printf '%s' "$input" | sed -n "s/.*\"$1\": *\"\([A-Za-z_]*\)\".*/\1/p"; }
printf '%s\n' "$(field hook_event_name) $(field tool_name) $SAMPLE_COLOUR" | tr -s ' ' >>"${SAMPLE_LOG:-/dev/null}"
