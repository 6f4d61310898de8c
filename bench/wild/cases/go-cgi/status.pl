# Status of a machine as a page: once as CGI, or, with "stay", a page for each line that is read.
use strict;
use warnings;
use Data::Dumper ();
use Encode ();
use File::Spec ();
use Getopt::Long ();
use HTTP::Tiny ();
use IO::Socket::INET ();
use JSON::PP ();
use POSIX ();
use Storable ();
use Time::Local ();

$| = 1;
sub page {
    my %facts = (time => POSIX::strftime("%FT%TZ", gmtime), load => [POSIX::times()], root => File::Spec->rootdir);
    return "<pre>" . JSON::PP->new->canonical->pretty->encode(\%facts) . "</pre>\n";
}
if ("@ARGV" eq "stay") {
    while (<STDIN>) { my $page = page(); print length($page), "\n", $page }
} else {
    print "Content-Type: text/html\r\n\r\n", page();
}
