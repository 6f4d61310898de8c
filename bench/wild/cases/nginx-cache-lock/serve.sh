# serve.sh PORT: nginx with a cache before the forum
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
    proxy_cache_path cache keys_zone=forum:1m;
    upstream forum { server 127.0.0.1:9223; keepalive 100; }
    server {
        listen 127.0.0.1:$1;
        location / {
            proxy_pass http://forum;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_cache forum;
            proxy_cache_key \$uri;
            proxy_cache_lock ${CACHE_LOCK:-on};
        }
    }
}
END
exec nginx -p "$run" -e stderr -c "$run/nginx.conf"
