threads 5, 5
workers 0
environment 'production'
bind "tcp://127.0.0.1:#{ENV.fetch('PORT', '9292')}"
quiet
