# An article of a bulletin board, its markup turned into HTML for each reader.
use strict;
use warnings;

my $keep = $ENV{KEEP_HTML};
my %kept;

my @paragraphs;
for my $n (1 .. 240) {
    push @paragraphs, $n % 6
        ? "In $n of the minutes, *the chair* said that _nobody_ had read note [$n], or `nearly` nobody."
        : "> quoted from note [$n]";
}
my $article = join("\n\n", @paragraphs) . "\n\n-- the editor\n";

sub html {
    my ($text) = @_;
    for ($text) {
        s/&/&amp;/g;
        s/</&lt;/g;
        s/>/&gt;/g;
        # An appendix: whole lines up to a dash and its number. It may begin at any line.
        s{^(?:.*\n)+?-- \d+\n}{}mg;
        s{^&gt; (.*)$}{<blockquote>$1</blockquote>}mg;
        s{(?<=\s)\*(\w[\w ]*\w)\*}{<em>$1</em>}g;
        s{_(\w+)_}{<strong>$1</strong>}g;
        s{`([^`]+)`}{<code>$1</code>}g;
        s{\[(\d+)\]}{<a href="#note-$1">$1</a>}g;
    }
    return join "\n", map { "<p>$_</p>" } split /\n{2,}/, $text;
}

sub {
    my $body = $keep ? ($kept{article} //= html($article)) : html($article);
    return [200, ['Content-Type' => 'text/html; charset=utf-8', 'Content-Length' => length $body], [$body]];
};
