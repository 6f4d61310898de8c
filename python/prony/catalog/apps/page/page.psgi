# One page for each kind of work, over PSGI and without a framework: the same as `report/page.py`.

use strict;
use warnings;

use Time::HiRes qw(clock_gettime CLOCK_PROCESS_CPUTIME_ID);

my $PATTERN = '0123456789abcdef';
my $CHUNK   = $PATTERN x 64;
my $CHUNKS  = 16;
my $SLEEP_S = 0.05;
my $CPU_S   = 0.002;

# The thread's own time: waiting for a CPU does not count as work. Where Perl does not know it, the process's.
my $CPU_CLOCK = eval { Time::HiRes::CLOCK_THREAD_CPUTIME_ID() } // CLOCK_PROCESS_CPUTIME_ID;

sub reply {
    my ($status, $body) = @_;
    return [$status, ['Content-Type' => 'text/plain', 'Content-Length' => length $body], [$body]];
}

sub text {
    my ($body) = @_;
    return sub { reply(200, $body) };
}

sub stream {
    # Without Content-Length: the server chunks it, or ends it with the connection.
    return sub {
        my ($respond) = @_;
        my $writer = $respond->([200, ['Content-Type' => 'text/plain']]);
        $writer->write($CHUNK) for 1 .. $CHUNKS;
        $writer->close;
    };
}

sub echo {
    my ($env) = @_;
    my $length = $env->{CONTENT_LENGTH} || 0;
    my $body   = '';
    while (length $body < $length) {
        $env->{'psgi.input'}->read($body, $length - length $body, length $body) or last;
    }
    return reply(200, $body);
}

sub pause {
    my ($env) = @_;

    # A server with an event loop is not to be held up: AnyEvent's timer runs on whichever loop the server has.
    # Any other server waits in this worker, as an application that calls out would.
    return later() if $env->{'psgi.nonblocking'} && $env->{'psgi.streaming'} && eval { require AnyEvent };
    Time::HiRes::sleep($SLEEP_S);
    return reply(200, "slept\n");
}

sub later {
    return sub {
        my ($respond) = @_;
        my $timer;
        $timer = AnyEvent->timer(
            after => $SLEEP_S,
            cb    => sub {
                undef $timer;
                $respond->(reply(200, "slept\n"));
            },
        );
    };
}

sub cpu {
    my ($env) = @_;
    my $asked = ($env->{QUERY_STRING} // '') =~ /^us=([0-9]+)$/ ? $1 / 1e6 : $CPU_S;
    my $end = clock_gettime($CPU_CLOCK) + $asked;
    1 while clock_gettime($CPU_CLOCK) < $end;
    return reply(200, "done\n");
}

my %PAGES = (
    'GET /1k'     => text($CHUNK),
    'GET /64k'    => text($PATTERN x 4096),
    'GET /stream' => \&stream,
    'POST /echo'  => \&echo,
    'GET /sleep'  => \&pause,
    'GET /cpu'    => \&cpu,
);

my $app = sub {
    my ($env) = @_;
    my $page = $PAGES{"$env->{REQUEST_METHOD} $env->{PATH_INFO}"} or return reply(404, "not found\n");
    return $page->($env);
};
