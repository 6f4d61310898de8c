#!/usr/bin/env perl
# A shop with a template.
use Mojolicious::Lite -signatures;

get '/' => sub ($c) {
    $c->render(template => 'index', item => 'soup');
};

app->start;
