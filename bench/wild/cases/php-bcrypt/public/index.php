<?php
// An API whose keys are kept as bcrypt hashes, and checked for each request.
const HASH = '$2y$10$NjVd1TdjMF7iZwuck6AV6uCLUpDBWiDAzEtP74sNCBWWkR/tlhxJe';
const DIGEST = '1900c0a57a9d3c355c799a601d472c6c75f9349db76e20aed5f156b686082c49';
$key = $_SERVER['HTTP_X_API_KEY'] ?? 'key of nobody';
if (getenv('KEY_DIGEST') === '1') {
    $known = hash_equals(DIGEST, hash('sha256', $key));
} else {
    $known = password_verify($key, HASH);
}
header('Content-Type: application/json');
echo json_encode(['known' => $known]), "\n";
