<?php
// Export a book: no more than a few conversions at once, because each takes much memory.
declare(strict_types=1);

require __DIR__ . '/client.php';

final class UnixSemaphore
{
    private readonly SysvSemaphore $semaphore;

    public function __construct(int $capacity)
    {
        $this->semaphore = sem_get(ftok(__FILE__, 'c'), $capacity, 0666, true);
    }

    public function locked(callable $work): mixed
    {
        if (!sem_acquire($this->semaphore)) {
            throw new RuntimeException('no place to convert in');
        }
        try {
            return $work();
        } finally {
            sem_release($this->semaphore);
        }
    }
}

function convert(string $book): string
{
    $service = getenv('CONVERTER_URL') ?: 'http://127.0.0.1:9510/';
    return http_get($service . '?book=' . rawurlencode($book));
}

try {
    $semaphore = new UnixSemaphore((int) (getenv('CONVERT_SLOTS') ?: 3));
    $book = $_GET['book'] ?? 'Max Havelaar';
    $converted = $semaphore->locked(fn () => convert($book));
    header('Content-Type: application/json');
    echo json_encode(['book' => $book, 'bytes' => strlen($converted)]);
} catch (RuntimeException $error) {
    http_response_code(503);
    echo $error->getMessage();
}
