# frozen_string_literal: true

require "json"

# A shop, with an index of its articles in memory, and the pages that it has shown.
class Shop
  def initialize
    @index = Hash.new { |words, word| words[word] = [] }
    60_000.times do |n|
      "article #{n} of the #{n % 37} shelf in colour #{n % 11} #{n.to_s(36)}".split.each { |word| @index[word] << n }
    end
    @seen = []
  end

  def call(env)
    found = @index.fetch("colour").first(20)
    page = JSON.generate(found: found, path: env["PATH_INFO"])
    @seen << (page * 400) # to show what was looked at
    [200, { "Content-Type" => "application/json" }, [page]]
  end
end
