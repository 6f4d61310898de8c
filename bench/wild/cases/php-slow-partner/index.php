<?php
// An order's way, as the parcel service knows it.
declare(strict_types=1);

require __DIR__ . '/client.php';

function ask(string $parcel): array
{
    $service = getenv('PARCELS_URL') ?: 'http://127.0.0.1:9528/';
    $answer = http_get($service . '?parcel=' . rawurlencode($parcel), 5);
    return ['parcel' => $parcel, 'bytes' => strlen($answer)];
}

header('Content-Type: application/json');
try {
    echo json_encode(ask($_GET['parcel'] ?? '3SABCD0123456'));
} catch (RuntimeException $error) {
    http_response_code(504);
    echo json_encode(['error' => $error->getMessage()]);
}
