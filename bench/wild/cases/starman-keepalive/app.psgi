# Availability of a book, from the library's service.
use strict;
use warnings;
use HTTP::Tiny;

my $library = $ENV{LIBRARY_URL} // 'http://127.0.0.1:9220/';
my $client;

my $app = sub {
    $client //= HTTP::Tiny->new(keep_alive => 1, timeout => 10);
    my $reply = $client->get($library);
    return [502, ['Content-Type' => 'text/plain'], ["no answer\n"]] unless $reply->{success};
    my $body = '{"bytes": ' . length($reply->{content}) . "}\n";
    return [200, ['Content-Type' => 'application/json', 'Content-Length' => length $body], [$body]];
};
$app;
