require 'sinatra'
require 'json'

set :environment, :production

get '/' do
  content_type :json
  { recipes: 2 }.to_json
end
