#!/bin/sh
# start.sh PORT: WORKERS as the number of workers
exec starman --host 127.0.0.1 --port "$1" --workers "${WORKERS:-2}" --disable-keepalive app.psgi
