threads 5, 5
bind "tcp://127.0.0.1:#{ENV.fetch('PORT', '9292')}"
environment 'production'
quiet
