#!/usr/bin/perl
# Tags of an image, from the registry.
use Mojolicious::Lite -signatures;

my $registry = $ENV{REGISTRY_URL} // 'http://127.0.0.1:9219/';
app->secrets(['a secret']);

if (($ENV{NON_BLOCKING} // '') eq '1') {
    get '/' => sub ($c) {
        $c->render_later;
        $c->ua->max_connections(100)->get_p($registry)->then(sub ($tx) {
            $c->render(json => { length => length $tx->result->body });
        })->catch(sub ($error) { $c->render(text => $error, status => 502) });
    };
}
else {
    get '/' => sub ($c) {
        my $reply = $c->ua->get($registry)->result;
        $c->render(json => { length => length $reply->body });
    };
}
app->start;
