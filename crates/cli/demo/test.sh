# Checks the greeting around the edges of the day.
failed=0
check() {
    got=$(sh greeting.sh "$1")
    if [ "$got" = "$2" ]; then echo "ok   $1: $got"; else echo "FAIL $1: $got, expected $2"; failed=1; fi
}
check 0 "Good morning"
check 11 "Good morning"
check 12 "Good afternoon"
check 18 "Good evening"
exit $failed
