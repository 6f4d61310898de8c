workers = 2
worker_class = "gthread"
threads = 3
keepalive = 5
