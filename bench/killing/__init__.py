"""Parts of `bench/kill9`."""
