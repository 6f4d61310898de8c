package Shop;
use strict;
use warnings;

sub app {
    my ($file) = @_;
    return sub {
        open my $menu, '<', $file or die "$file: $!";
        return [200, ['Content-Type' => 'text/plain'], [<$menu>]];
    };
}

1;
