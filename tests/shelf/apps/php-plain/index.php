<?php
header('Content-Type: text/plain');
$name = $_GET['name'] ?? 'world';
echo "Hello, $name!\n";
