# frozen_string_literal: true

# The smallest Rack application.

BODY = "Hello, world!\n"

run lambda { |_env|
  [200, { 'Content-Type' => 'text/plain', 'Content-Length' => BODY.bytesize.to_s }, [BODY]]
}
