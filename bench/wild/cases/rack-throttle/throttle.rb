# frozen_string_literal: true

# So many requests of an address in a period; to more than these it says 429.
class Throttle
  def initialize(app, limit:, period:)
    @app = app
    @limit = limit
    @period = period
    @lock = Mutex.new
    @counts = Hash.new(0)
    @since = 0
  end

  def call(env)
    return @app.call(env) if allowed?(env["REMOTE_ADDR"])

    [429, { "Content-Type" => "text/plain", "Retry-After" => @period.to_s }, ["Retry later\n"]]
  end

  private

  def allowed?(address)
    now = Process.clock_gettime(Process::CLOCK_MONOTONIC).to_i / @period
    @lock.synchronize do
      if now != @since
        @since = now
        @counts.clear
      end
      (@counts[address] += 1) <= @limit
    end
  end
end
