# Posts of a time bank, each with its member.
require 'pg'

def database
  Thread.current[:database] ||= PG.connect(ENV.fetch('DATABASE_URL'))
end

def posts
  if ENV['JOIN'] == '1'
    return database.exec('select p.title, m.name from rack_nplus1_posts p join rack_nplus1_members m on m.id = p.member').values
  end
  database.exec('select title, member from rack_nplus1_posts').map do |post|
    member = database.exec_params('select name from rack_nplus1_members where id = $1', [post['member']])
    [post['title'], member.first['name']]
  end
end

run(lambda do |_env|
  body = posts.map { |title, name| "#{title}, by #{name}\n" }.join
  [200, { 'content-type' => 'text/plain' }, [body]]
end)
