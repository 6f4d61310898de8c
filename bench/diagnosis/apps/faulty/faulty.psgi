# One fault at each path, over PSGI: those of `faulty.py` that fit a server of processes.

use strict;
use warnings;

use File::Temp qw(tempfile);
use IO::Handle;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC CLOCK_PROCESS_CPUTIME_ID);

my $counted = 0;
my @kept;

# A body of so many kilobytes; of none, the usual one.
sub sized {
    my ($kib) = @_;
    return $kib ? 'x' x ($kib * 1024) : "done\n";
}

sub reply {
    my ($status, $body) = @_;
    return [$status, ['Content-Type' => 'text/plain', 'Content-Length' => length $body], [$body]];
}

sub work {
    my ($us) = @_;
    my $end = clock_gettime(CLOCK_PROCESS_CPUTIME_ID) + $us / 1e6;
    1 while clock_gettime(CLOCK_PROCESS_CPUTIME_ID) < $end;
    return;
}

# Of no lines, one line to the kernel; else each to the disk at once.
sub write_log {
    my ($lines) = @_;
    my ($file) = tempfile(UNLINK => 1);
    for (1 .. ($lines || 1)) {
        print {$file} 'x' x 511, "\n";
        $file->flush;
        $file->sync if $lines;
    }
    close $file;
    return;
}

sub leak {
    my ($kib) = @_;
    push @kept, "\1" x ($kib * 1024);
    return;
}

sub hoard {
    my ($mib) = @_;
    push @kept, "\1" x (4 * 1024 * 1024) if 4 * @kept < $mib;
    return;
}

my %PAGES = (
    '/work'  => [\&work, 200],
    '/sleep' => [sub { Time::HiRes::sleep($_[0] / 1000) }, 20],
    '/log'   => [\&write_log, 1],
    '/leak'  => [\&leak, 64],
    '/hoard' => [\&hoard, 64],
    '/fork'  => [sub { system '/bin/true' }, 0],
    '/wrong' => [sub { }, 10],
    '/sized' => [sub { }, 0],
);

my $app = sub {
    my ($env) = @_;
    my $page = $PAGES{ $env->{PATH_INFO} } or return reply(404, "not found\n");
    my ($run, $default) = @$page;
    my $number = ($env->{QUERY_STRING} // '') =~ /^n=([0-9]+)$/ ? $1 : $default;
    return reply(500, "wrong\n") if $env->{PATH_INFO} eq '/wrong' && ++$counted % $number == 0;
    return reply(200, sized($number)) if $env->{PATH_INFO} eq '/sized';
    $run->($number);
    return reply(200, "done\n");
};
