<?php

// The smallest page in PHP.

const BODY = "Hello, world!\n";

ini_set('default_charset', ''); // Else PHP adds it to the type of a text.
header_remove('X-Powered-By');
header('Content-Type: text/plain');
header('Content-Length: ' . strlen(BODY));
echo BODY;
