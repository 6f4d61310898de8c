# frozen_string_literal: true

require_relative "shop"
require_relative "memory_guard"

use MemoryGuard, limit_mb: Integer(ENV.fetch("WORKER_MEMORY_MB", "64"))
run Shop.new
