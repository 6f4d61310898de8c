# frozen_string_literal: true

require "json"
require "net/http"
require "uri"

# Asks the search service. Net::HTTP is not safe to share, so one thread uses the connection at a time.
class Search
  LOCK = Mutex.new
  PER_THREAD = ENV["SEARCH_CLIENT"] == "thread"

  class << self
    attr_accessor :shared
  end

  def initialize(url)
    @uri = URI(url)
  end

  def find(query)
    reply = PER_THREAD ? get(own, query) : LOCK.synchronize { get(self.class.shared ||= connect, query) }
    JSON.generate(status: reply.code.to_i, bytes: reply.body.bytesize)
  end

  private

  def get(http, query)
    http.request(Net::HTTP::Get.new("/?#{query}"))
  end

  def own
    Thread.current[:search_client] ||= connect
  end

  def connect
    http = Net::HTTP.new(@uri.host, @uri.port)
    http.keep_alive_timeout = 30
    http.read_timeout = 10
    http.start
  end
end
