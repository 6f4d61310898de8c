module example.org/recipes

go 1.21
