# Tonight's programme of a cinema, out of PostgreSQL.
require 'connection_pool'
require 'pg'

DB = ConnectionPool.new(size: 5, timeout: 5) { PG.connect(ENV.fetch('DATABASE_URL')) }

run(lambda do |_env|
  film, starts = DB.with { |db| db.exec("select 'Playtime', '20:15' from pg_sleep(0.012)").values.first }
  [200, { 'content-type' => 'text/plain' }, ["#{starts} #{film}\n"]]
end)
