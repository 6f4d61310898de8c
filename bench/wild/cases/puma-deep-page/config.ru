# frozen_string_literal: true
# One page of the visits of buses at stops, as a crawler reads them to the end.
require "json"
require "pg"

PAGE = 50
KEYSET = ENV["KEYSET"] == "1"

def database
  Thread.current[:database] ||= PG.connect(ENV.fetch("DATABASE_URL"))
end

def visits(number)
  if KEYSET
    database.exec_params("select id, stop, at from fifth_visits where id > $1 order by id limit $2", [number * PAGE, PAGE])
  else
    database.exec_params("select id, stop, at from fifth_visits order by id limit $1 offset $2", [PAGE, number * PAGE])
  end
end

run lambda { |env|
  number = 13_000 + rand(900)
  rows = visits(number).to_a
  body = JSON.generate(page: number, visits: rows)
  [200, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
}
