# serve.sh PORT: nginx for downloads
run=$(mktemp -d)
chmod 755 "$run"
cat > "$run/nginx.conf" <<END
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    sendfile on;
    server {
        listen 127.0.0.1:$1;
        root $PWD/files;
        limit_rate ${LIMIT_RATE:-500k};
    }
}
END
exec nginx -p "$run" -e stderr -c "$run/nginx.conf"
