# The smallest page of Sinatra.
require 'sinatra/base'

class Hello < Sinatra::Base
  get('/') { 'hihihi' }
end

run Hello
