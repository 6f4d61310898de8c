# The readings of a day, as psalms and lessons are looked up in another service.
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;

my $lessons = $ENV{LESSONS_URL} || 'http://127.0.0.1:9529/';
my $json    = JSON::PP->new->canonical;

sub {
    my $env   = shift;
    my $reply = HTTP::Tiny->new( timeout => 10 )->get($lessons);
    return [ 502, [ 'Content-Type' => 'text/plain' ], [ $reply->{reason} ] ] unless $reply->{success};
    my $body = $json->encode( { day => 'Monday', psalms => [ 1, 2, 6 ], bytes => length $reply->{content} } );
    return [ 200, [ 'Content-Type' => 'application/json', 'Content-Length' => length $body ], [$body] ];
};
