<?php
// The tables of a database, with PHP's own server.
$database = pg_pconnect(getenv('DATABASE_URL'));
$row = pg_fetch_row(pg_query($database, 'select 12 from pg_sleep(0.04)'));
header('Content-Type: application/json');
echo json_encode(['tables' => (int) $row[0]]), "\n";
