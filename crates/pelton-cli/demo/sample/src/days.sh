# days_in_month MONTH YEAR: prints how many days the month has.
days_in_month() {
    case "$1" in
        2) if is_leap "$2"; then echo 29; else echo 28; fi ;;
        4|6|9|11) echo 30 ;;
        *) echo 31 ;;
    esac
}
