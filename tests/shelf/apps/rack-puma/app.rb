class App
  def call(env)
    [200, { 'Content-Type' => 'text/plain' }, ["rack #{env['PATH_INFO']}\n"]]
  end
end
