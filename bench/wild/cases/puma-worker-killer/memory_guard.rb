# frozen_string_literal: true

# Ends a worker that has grown too large; Puma starts another in its place.
class MemoryGuard
  def initialize(app, limit_mb:)
    @app = app
    @limit_kb = limit_mb * 1024
    @ending = false
  end

  def call(env)
    @app.call(env)
  ensure
    if !@ending && resident_kb > @limit_kb
      @ending = true
      warn "worker #{Process.pid} has #{resident_kb / 1024} MB, and is ended"
      Process.kill(:TERM, Process.pid)
    end
  end

  private

  def resident_kb
    File.read("/proc/self/statm").split[1].to_i * 4
  end
end
