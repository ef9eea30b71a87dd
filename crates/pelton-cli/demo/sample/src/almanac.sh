#!/bin/sh
# almanac: questions about dates.
here=$(dirname "$0")
. "$here/leap.sh"
. "$here/days.sh"

case "$1" in
    leap) if is_leap "$2"; then echo yes; else echo no; fi ;;
    days) days_in_month "$2" "$3" ;;
    *) echo "usage: almanac.sh leap YEAR | days MONTH YEAR" >&2; exit 2 ;;
esac
