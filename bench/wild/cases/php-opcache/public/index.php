<?php
// A page of a content system: many classes for each request.
require __DIR__ . '/../tools/autoload.php';

$parts = [];
foreach (glob(BUILD . '/Part*.php') as $file) {
    require_once $file;
    $class = 'Shop\\' . basename($file, '.php');
    $parts[] = (new $class())->title('en');
}
header('Content-Type: text/plain');
echo implode("\n", $parts), "\n";
