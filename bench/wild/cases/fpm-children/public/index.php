<?php
// A search page: the index takes 60 ms to answer.
$db = pg_pconnect(getenv('PG_DSN') ?: 'host=127.0.0.1 port=5499 user=wild dbname=wild');
$row = pg_fetch_assoc(pg_query($db, 'select pg_sleep(0.06), 12 as hits'));
header('Content-Type: text/plain');
echo "hits: {$row['hits']}\n";
