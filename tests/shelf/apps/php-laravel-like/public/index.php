<?php
$database = require __DIR__ . '/../bootstrap/app.php';
echo '<h1>' . htmlspecialchars($database->query('select title from posts')->fetchColumn()) . "</h1>\n";
