# Gem versions, out of PostgreSQL.
require 'connection_pool'
require 'pg'

DB = ConnectionPool.new(size: Integer(ENV.fetch('DB_POOL', '5')), timeout: 30) do
  PG.connect(ENV.fetch('DATABASE_URL'))
end

run(lambda do |_env|
  rows = DB.with { |db| db.exec('select pg_sleep(0.05), 3 as versions').to_a }
  [200, { 'content-type' => 'text/plain' }, ["versions: #{rows.first['versions']}\n"]]
end)
