#!/bin/sh
# As the old unit had it: LimitNOFILE=64
ulimit -n "${NOFILE:-64}"
exec node server.js
