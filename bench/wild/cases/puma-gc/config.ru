# A catalogue in memory; the garbage collector is to run between requests.
require 'json'

CATALOGUE = Array.new(150_000) { |n| { 'title' => "Book #{n}", 'tags' => ["shelf #{n % 90}"] } }

class CollectAfter
  def initialize(app)
    @app = app
  end

  def call(env)
    reply = @app.call(env)
    GC.start unless ENV['COLLECT'] == '0'
    reply
  end
end

use CollectAfter
run(lambda do |_env|
  [200, { 'content-type' => 'application/json' }, [JSON.generate(CATALOGUE.first(20))]]
end)
