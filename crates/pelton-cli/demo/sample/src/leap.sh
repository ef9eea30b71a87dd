# is_leap YEAR: succeeds if February has 29 days that year.
is_leap() {
    [ $(($1 % 4)) -eq 0 ] && [ $(($1 % 100)) -ne 0 ]
}
