# frozen_string_literal: true
# A recipe of a cookbook that is kept in a PStore: one file, no database to install.
require "json"
require "pstore"
require "tmpdir"

FILE = File.join(Dir.mktmpdir("cookbook"), "recipes.pstore")
COUNT = 5_000
store = PStore.new(FILE, true)
store.transaction do
  store[:recipes] = (1..COUNT).to_h do |n|
    [n, { title: "Recipe #{n}", minutes: n % 90, steps: ["chop", "fry", "serve #{n}"], needs: { "flour" => n % 500, "eggs" => n % 4 } }]
  end
end

class Kept
  def initialize(file)
    @file = file
    @lock = Mutex.new
  end

  def recipe(number)
    @lock.synchronize do
      changed = File.mtime(@file)
      if changed != @changed
        @recipes = PStore.new(@file).transaction(true) { |open| open[:recipes] }
        @changed = changed
      end
    end
    @recipes[number]
  end
end

kept = ENV["KEEP_RECIPES"] == "1" ? Kept.new(FILE) : nil

run lambda { |env|
  number = 1 + rand(COUNT)
  recipe = kept ? kept.recipe(number) : store.transaction(true) { store[:recipes][number] }
  body = JSON.generate(recipe)
  [200, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
}
