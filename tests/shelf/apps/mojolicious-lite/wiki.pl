#!/usr/bin/env perl
use Mojolicious::Lite -signatures;

get '/' => sub ($c) { $c->render(text => "wiki\n") };

app->log->level('warn');
app->start;
