"""What `bench/engine` is made of: cells, servers, generators, runs and what they came to."""
