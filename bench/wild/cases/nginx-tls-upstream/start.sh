#!/bin/sh
# start.sh PORT: nginx in front of a service that speaks TLS
set -eu
run=$(mktemp -d)
sed -e "s#PORT#$1#" -e "s#UPSTREAM#${UPSTREAM:-127.0.0.1:9301}#" "${SITE:-site.conf}" > "$run/nginx.conf"
exec nginx -p "$run" -e stderr -c "$run/nginx.conf"
