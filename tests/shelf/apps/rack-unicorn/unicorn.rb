worker_processes 2
timeout 30
preload_app true
