# Profile of a visitor; where the nickname is missing it is logged, and the first name is taken.
require 'logger'

class Node
  def initialize(name, parent)
    @name, @parent, @children, @marks = name, parent, [], { seen: 3, tags: %w[a b c] }
    parent&.children&.push(self)
  end
  attr_reader :name, :children
end

class Visitor
  def initialize(first_name, shop)
    @first_name, @shop = first_name, shop
  end
  attr_reader :first_name

  if ENV['SHORT_INSPECT'] == '1'
    def inspect = "#<Visitor #{@first_name}>"
  end
end

shop = Node.new('shop', nil)
12.times { |hall| Node.new("hall #{hall}", shop).then { |node| 100.times { |shelf| Node.new("shelf #{shelf}", node) } } }
log = Logger.new(File::NULL)

run lambda { |_env|
  visitor = Visitor.new('Ada', shop)
  name =
    begin
      visitor.nickname
    rescue NoMethodError => e
      log.info(e.message)
      visitor.first_name
    end
  [200, { 'Content-Type' => 'text/plain' }, ["Hello, #{name}\n"]]
}
