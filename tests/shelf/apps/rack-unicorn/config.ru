counter = lambda do |_env|
  [200, { 'Content-Type' => 'text/plain' }, ["counted\n"]]
end
run counter
