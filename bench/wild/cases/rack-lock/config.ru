# An older Rails-like stack: middleware of a generator, and a slow upstream.
require 'net/http'
require 'rack'

UPSTREAM = URI(ENV.fetch('UPSTREAM_URL', 'http://127.0.0.1:9120/'))

use Rack::Runtime
use Rack::Lock unless ENV['ALLOW_CONCURRENCY'] == '1'
use Rack::ContentLength

run(lambda do |_env|
  body = Net::HTTP.get(UPSTREAM)
  [200, { 'content-type' => 'text/plain' }, ["#{body.bytesize} bytes\n"]]
end)
