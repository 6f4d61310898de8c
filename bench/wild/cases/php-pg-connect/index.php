<?php
// Is a coupon valid?
$url = getenv('DATABASE_URL');
$database = getenv('DATABASE_KEEP') === '1' ? pg_pconnect($url) : pg_connect($url, PGSQL_CONNECT_FORCE_NEW);
if (!$database) {
    http_response_code(503);
    exit('no database');
}
$result = pg_query_params(
    $database,
    'select percent, until from fifth_coupons where code = $1',
    ['C' . random_int(1, 2000)],
);
$coupon = pg_fetch_assoc($result);
header('Content-Type: application/json');
echo json_encode(['valid' => $coupon !== false, 'coupon' => $coupon]);
