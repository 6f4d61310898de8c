# frozen_string_literal: true

require "connection_pool"
require "json"
require "pg"
require "rack"

POOL = ConnectionPool.new(size: 8, timeout: 10) { PG.connect(ENV.fetch("DATABASE_URL")) }
FIND = "select id, name from six_accounts where lower(email) = lower($1) limit 1"

def account(email)
  POOL.with { |db| db.exec_params(FIND, [email]).first }
end

run lambda { |env|
  request = Rack::Request.new(env)
  email = request.params.fetch("email", "Reader29000@Example.org")
  found = account(email)
  [found ? 200 : 404, { "Content-Type" => "application/json" }, [JSON.generate(found || {})]]
}
