use strict;
use warnings;

my $app = sub {
    my $env = shift;
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => 8], ["mailbox\n"]];
};
