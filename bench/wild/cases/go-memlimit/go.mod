module example.org/geocoder

go 1.19
