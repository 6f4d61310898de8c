threads 1, 5
workers Integer(ENV.fetch('WEB_CONCURRENCY', 2))
port ENV.fetch('PORT', 3000)
preload_app!
