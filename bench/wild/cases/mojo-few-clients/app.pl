#!/usr/bin/env perl
# The nearest post box to an address: asks a geocoder without blocking.
use Mojolicious::Lite -signatures;

my $geocoder = $ENV{GEOCODER_URL} // 'http://127.0.0.1:9430/';
app->log->level('error');
app->ua->max_connections(100);

get '/' => sub ($c) {
    $c->render_later;
    $c->ua->get($geocoder => sub ($ua, $tx) {
        if (my $error = $tx->error) {
            return $c->render(status => 502, text => "$error->{message}\n");
        }
        $c->render(json => {metres => length($tx->res->body) + 40});
    });
};

app->start;
