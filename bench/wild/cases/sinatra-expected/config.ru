# frozen_string_literal: true

require "connection_pool"
require "json"
require "pg"
require "sinatra/base"

class Library < Sinatra::Base
  set :show_exceptions, false
  set :environment, :production

  DB = ConnectionPool.new(size: 5, timeout: 5) { PG.connect(ENV.fetch("DATABASE_URL")) }

  helpers do
    def query(sql, *values)
      DB.with { |db| db.exec_params(sql, values).to_a }
    end
  end

  get "/" do
    content_type :json
    JSON.generate(books: query("select id, title, year from six_books order by year desc, id limit 10"))
  end

  get "/books/:id" do
    content_type :json
    book = query("select id, title, year from six_books where id = $1", params["id"].to_i).first
    book ? JSON.generate(book) : halt(404, "{}")
  end
end

run Library
