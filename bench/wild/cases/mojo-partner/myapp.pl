#!/usr/bin/env perl
# Prices of books, asked of a partner without blocking.
use Mojolicious::Lite -signatures;
use Mojo::UserAgent;

my $partner = $ENV{PARTNER_URL} || 'http://127.0.0.1:9524/';
my $ua = Mojo::UserAgent->new(max_connections => 200, inactivity_timeout => 20, request_timeout => 20);

helper price_p => sub ($c, $isbn) {
    return $ua->get_p("$partner?isbn=$isbn")->then(
        sub ($tx) {
            my $reply = $tx->result;
            die 'the partner says ' . $reply->code . "\n" unless $reply->is_success;
            return length $reply->body;
        }
    );
};

get '/' => sub ($c) {
    $c->render_later;
    my $isbn = $c->param('isbn') // '9789025300999';
    $c->price_p($isbn)->then(
        sub ($price) { $c->render(json => { isbn => $isbn, price => $price }) }
    )->catch(
        sub ($error) { $c->render(json => { error => "$error" }, status => 502) }
    );
};

get '/health' => { text => 'ok' };

app->start;
