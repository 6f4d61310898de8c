<?php
namespace Acme;

final class Router
{
    /** @var array<string, callable> */
    private array $routes = [];

    public function get(string $path, callable $handler): void
    {
        $this->routes[$path] = $handler;
    }

    public function run(string $path): void
    {
        $handler = $this->routes[$path] ?? null;
        http_response_code($handler ? 200 : 404);
        header('Content-Type: application/json');
        echo json_encode($handler ? $handler() : ['error' => 'not found']);
    }
}
