# frozen_string_literal: true

require_relative "throttle"
require "sinatra/base"

class Speakers < Sinatra::Base
  set :show_exceptions, false
  set :environment, :production

  NAMES = %w[Anna Bert Carla Dirk Eva Frits].freeze

  get "/" do
    content_type :html
    "<!doctype html><title>Speakers</title><ul>#{NAMES.map { |name| "<li>#{name}" }.join}</ul>"
  end

  get "/:name" do
    halt 404 unless NAMES.include?(params["name"])
    "<!doctype html><h1>#{params["name"]}</h1>"
  end
end

use Throttle, limit: Integer(ENV.fetch("THROTTLE_LIMIT", "40")), period: 1
run Speakers
