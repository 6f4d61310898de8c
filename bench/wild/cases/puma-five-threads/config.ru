# Figures of a dashboard, out of the data warehouse's API.
require 'json'
require 'net/http'

WAREHOUSE = URI(ENV.fetch('WAREHOUSE_URL', 'http://127.0.0.1:9427/'))

run(lambda do |_env|
  reply = Net::HTTP.get_response(WAREHOUSE)
  [200, { 'content-type' => 'application/json' }, [JSON.generate(readers: reply.body.bytesize)]]
end)
