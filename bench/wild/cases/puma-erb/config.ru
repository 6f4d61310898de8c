# Time sheet: 600 rows in a template.
require 'erb'

ROWS = Array.new(600) do |number|
  { day: format('2026-11-%02d', number % 28 + 1), who: "O'Neill & #{number % 17}", hours: number % 9, what: '<meeting> "plans"' }
end
PAGE = ERB.new(<<~HTML, trim_mode: '-')
  <table>
  <%- rows.each do |row| -%>
    <tr><td><%= h(row[:day]) %></td><td><%= h(row[:who]) %></td>
    <td><%= h(format('%.2f', row[:hours])) %></td><td><%= h(row[:what]) %></td></tr>
  <%- end -%>
  </table>
HTML

class Sheet
  include ERB::Util
  def call(_env)
    [200, { 'Content-Type' => 'text/html' }, [render(ROWS)]]
  end
  PAGE.def_method(self, 'render(rows)')
end

run Sheet.new
