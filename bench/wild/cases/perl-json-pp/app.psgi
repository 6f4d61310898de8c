# Products of a catalogue, as JSON.
use strict;
use warnings;

my $backend = $ENV{JSON_BACKEND} || 'JSON::PP';
eval "require $backend" or die $@;
my $json = $backend->new->utf8->canonical;

my @products = map {
    my $n = $_;
    {
        id          => $n,
        name        => "Product $n",
        code        => sprintf('%013d', 4_000_000 + $n * 37),
        categories  => [ map {"category-$_"} 1 .. 6 ],
        ingredients => [ map { { text => "ingredient $_", percent => $_ * 1.5, vegan => $_ % 2 } } 1 .. 8 ],
    }
} 1 .. 20;

sub page {
    my ($status, $content) = @_;
    return [ $status, [ 'Content-Type' => 'application/json' ], [ $json->encode($content) ] ];
}

my $app = sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    return page(200, { count => scalar @products, products => \@products }) if $path eq '/';
    if ($path =~ m{^/product/(\d+)$} && $1 >= 1 && $1 <= @products) {
        return page(200, $products[ $1 - 1 ]);
    }
    return page(404, { error => 'no such product' });
};
