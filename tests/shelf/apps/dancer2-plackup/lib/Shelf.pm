package Shelf;
use Dancer2;

set serializer => 'JSON';

get '/' => sub { return { shelf => 'full' } };

1;
