# Prints a greeting for the hour given, 0 to 23.
hour=$1
if [ "$hour" -lt 12 ]; then
    echo "Good morning"
else
    echo "Good evening"
fi
