most = Integer(ENV.fetch('MAX_THREADS', '5'))
threads most, most
bind "tcp://127.0.0.1:#{ENV.fetch('PORT', '9292')}"
environment 'production'
quiet
