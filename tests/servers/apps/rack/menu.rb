class Menu
  def initialize(path)
    @dish = File.read(path).strip
  end

  def call(_env)
    [200, { 'Content-Type' => 'text/html' }, ["<p>#{@dish}</p>"]]
  end
end
