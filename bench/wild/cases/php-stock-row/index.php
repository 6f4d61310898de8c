<?php
// Checkout: takes one of the stock, and asks for the payment.
declare(strict_types=1);

require __DIR__ . '/client.php';

const ARTICLE = 1;

function ask_payment(): int
{
    return strlen(http_get(getenv('PAYMENT_URL') ?: 'http://127.0.0.1:9516/'));
}

function take_from_stock($db): int
{
    $row = pg_fetch_row(pg_query_params($db, 'select left_over from six_stock where article = $1 for update', [ARTICLE]));
    if ($row === false || $row[0] < 1) {
        throw new RuntimeException('sold out');
    }
    pg_query_params($db, 'update six_stock set left_over = left_over - 1 where article = $1', [ARTICLE]);
    return (int) $row[0] - 1;
}

$db = pg_pconnect(getenv('DATABASE_URL'));
try {
    pg_query($db, 'begin');
    $left = take_from_stock($db);
    if (getenv('PAY_AFTER_COMMIT') === '1') {
        pg_query($db, 'commit');
        ask_payment();
    } else {
        ask_payment();
        pg_query($db, 'commit');
    }
    header('Content-Type: application/json');
    echo json_encode(['article' => ARTICLE, 'left' => $left]);
} catch (RuntimeException $error) {
    pg_query($db, 'rollback');
    http_response_code(409);
    echo $error->getMessage();
}
