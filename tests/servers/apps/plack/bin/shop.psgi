# Its module and its menu are relative to the project's folder.
use strict;
use warnings;
use lib 'lib';
use Shop;

Shop::app('menu.txt');
