# The smallest PSGI application.

use strict;
use warnings;

my $BODY = "Hello, world!\n";

my $app = sub {
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => length $BODY], [$BODY]];
};
