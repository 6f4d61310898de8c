# frozen_string_literal: true

require_relative "search"

run lambda { |env|
  case env["PATH_INFO"]
  when "/health" then [200, { "Content-Type" => "text/plain" }, ["ok"]]
  else
    found = Search.new(ENV.fetch("SEARCH_URL", "http://127.0.0.1:9512")).find(env["QUERY_STRING"])
    [200, { "Content-Type" => "application/json" }, [found]]
  end
}
