#!/bin/sh
# Runs every check and says how many passed. Needs nothing but a POSIX shell.
cd "$(dirname "$0")/.." || exit 2
passed=0
failed=0

check() {
    expected=$1
    shift
    answer=$(sh src/almanac.sh "$@")
    if [ "$answer" = "$expected" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAIL almanac $*: expected $expected, got $answer"
    fi
}

check yes leap 2024
check no leap 2023
check no leap 1900
check yes leap 2000
check 29 days 2 2024
check 28 days 2 2023
check 29 days 2 2000
check 30 days 4 2023
check 31 days 12 2023

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
