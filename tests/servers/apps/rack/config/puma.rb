workers 2
threads 3, 3
port ENV['PORT']
