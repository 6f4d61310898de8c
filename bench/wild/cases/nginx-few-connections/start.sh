#!/bin/sh
# start.sh PORT: the app behind nginx, as the image has it; CONNECTIONS as worker_connections
set -eu
here=$(cd "$(dirname "$0")" && pwd)
run=$(mktemp -d)
chmod 755 "$run"
cat > "$run/nginx.conf" <<END
daemon off;
worker_processes 1;
pid nginx.pid;
events { worker_connections ${CONNECTIONS:-32}; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    server {
        listen 127.0.0.1:$1;
        location / {
            proxy_pass http://127.0.0.1:9541;
        }
    }
}
END
node "$here/server.js" "$run/ready" &
app=$!
while [ ! -e "$run/ready" ]; do sleep 0.05; done
nginx -p "$run" -e stderr -c "$run/nginx.conf" &
trap 'kill $app $!; rm -rf "$run"' EXIT TERM INT
wait $!
