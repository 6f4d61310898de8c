<?php
// A small client for HTTP: curl is not everywhere.
declare(strict_types=1);

function http_get(string $url, float $timeout = 10.0): string
{
    $parts = parse_url($url);
    $at = sprintf('tcp://%s:%d', $parts['host'], $parts['port'] ?? 80);
    $socket = @stream_socket_client($at, $number, $message, $timeout);
    if ($socket === false) {
        throw new RuntimeException("$at: $message");
    }
    stream_set_timeout($socket, (int) $timeout);
    $path = ($parts['path'] ?? '/') . (isset($parts['query']) ? '?' . $parts['query'] : '');
    fwrite($socket, "GET $path HTTP/1.1\r\nHost: {$parts['host']}\r\nConnection: close\r\n\r\n");
    $status = (int) (explode(' ', (string) fgets($socket))[1] ?? 0);
    $length = 0;
    while (($line = rtrim((string) fgets($socket))) !== '') {
        if (stripos($line, 'content-length:') === 0) {
            $length = (int) trim(substr($line, 15));
        }
    }
    $body = $length > 0 ? stream_get_contents($socket, $length) : '';
    fclose($socket);
    if ($status !== 200) {
        throw new RuntimeException("$at answered with $status");
    }
    return (string) $body;
}
