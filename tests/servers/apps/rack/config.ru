require_relative 'menu'

run Menu.new('menu.txt')
