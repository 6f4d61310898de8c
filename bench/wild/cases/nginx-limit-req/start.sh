#!/bin/sh
# start.sh PORT: nginx with a limit of requests in front of the planner
set -eu
run=$(mktemp -d)
sed -e "s#PORT#$1#" -e "s#RATE#${RATE:-50r/s}#" -e "s#UPSTREAM#${UPSTREAM:-127.0.0.1:9303}#" site.conf > "$run/nginx.conf"
exec nginx -p "$run" -e stderr -c "$run/nginx.conf"
